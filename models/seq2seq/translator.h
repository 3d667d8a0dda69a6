// Translates texts with a trained model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/text/token_vocabulary.h"
#include "models/common/saved_model.h"
#include "models/seq2seq/translator_program.h"

namespace skiff::models {

struct Translation {
  std::string text;
  // The attention of each token of the translation: for each token (the end among them, unless it
  // was cut) a weight for each token of the source. They add up to 1.
  std::vector<std::vector<float>> attention;
  std::vector<std::string> source_tokens;
  std::vector<std::string> target_tokens;
};

class Translator {
 public:
  // Loads a model that a training saved, with its vocabularies. With a beam of one hypothesis, the
  // translator takes the most probable token in each step, as the saved program does; a wider beam
  // makes another program of the network's file (network_file.h), with the same parameters. Throws
  // an Error: kNotFound, kIo and kDataLoss for files that are missing or broken; kInvalidArgument
  // if it isn't a translation model, and if the vocabularies aren't those of the training (by the
  // checksum in the network's file if there is one; else by their sizes); and what ParseNetwork and
  // BuildBeamTranslator throw.
  explicit Translator(const std::string& model_directory, const BeamOptions& beam = {.width = 1});

  // The kind of token in translations.
  text::TokenKind target_kind() const { return target_.kind(); }

  // Translates texts, at least one, together. A translation has at most `most_tokens` tokens; it is
  // the best of the beam. The translation of a text without tokens is empty. Throws an Error
  // (kInvalidArgument) for most_tokens below 1, and if the model returns anything but tokens of the
  // vocabulary and weights of the texts' tokens.
  std::vector<Translation> Translate(const std::vector<std::string>& texts, int64_t most_tokens);

 private:
  // Replaces the program. `path` is the network's file, for messages.
  void UseBeam(const Seq2SeqOptions& network, const std::string& path, const BeamOptions& beam);

  text::TokenVocabulary source_;
  text::TokenVocabulary target_;
  SavedModel model_;
  int64_t beam_width_ = 1;
};

}  // namespace skiff::models
