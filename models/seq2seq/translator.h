// Translates texts with a trained model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "models/seq2seq/token_vocabulary.h"

namespace skiff::models {

struct Translation {
  std::string text;
  // What each token of the translation looked at: for each (its end among them, unless it was cut)
  // a weight for each token of the source. They add up to 1.
  std::vector<std::vector<float>> attention;
  std::vector<std::string> source_tokens;
  std::vector<std::string> target_tokens;
};

class Translator {
 public:
  // Loads a model that a training saved, with its vocabularies. Throws an Error: kNotFound, kIo and
  // kDataLoss for files that are missing or broken; kInvalidArgument if it isn't a translation
  // model or has other vocabularies.
  explicit Translator(const std::string& model_directory);

  // What a token of a translation is.
  TokenKind target_kind() const { return target_.kind(); }

  // Translates texts, at least one, together. A translation has at most `most_tokens` tokens. That
  // of a text without tokens is empty. Throws an Error (kInvalidArgument) for most_tokens below 1.
  std::vector<Translation> Translate(const std::vector<std::string>& texts, int64_t most_tokens);

 private:
  Executor executor_{Place::Cpu()};
  TokenVocabulary source_;
  TokenVocabulary target_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<CompiledProgram> compiled_;
  std::vector<std::string> fetches_;
};

}  // namespace skiff::models
