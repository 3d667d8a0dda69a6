// BERT and ERNIE of other frameworks as models of models/ernie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/common/pretrained.h"
#include "models/ernie/ernie_options.h"

namespace skiff::models {

enum class ErnieSource {
  kHuggingFaceBert,   // transformers' BertModel and BertFor…
  kHuggingFaceErnie,  // transformers' ErnieModel and ErnieFor…
  // An inference model of Paddle, whose parameters have the names of published ERNIE models or
  // those that the layers of Paddle 2 give.
  kPaddle,
};

struct ErnieConversion : Conversion {
  ErnieSource from = ErnieSource::kHuggingFaceBert;
  // A file of tokens. Empty: vocab.txt, vocabulary.txt or tokenizer.json of the source's folder.
  std::string vocabulary = {};
  // Of the sequences that the saved program takes; training doesn't read it. 0: 128, or the
  // positions of a network that has fewer.
  int64_t length = 0;
};

// Returns the rules of transformers' names, the same for BERT and ERNIE.
std::vector<NameRule> HuggingFaceErnieRules();
// Returns the rules of the names that Paddle 2 gives the layers of a network of so many layers.
std::vector<NameRule> PaddleErnieRules(int64_t layers, bool has_tasks);

// Returns the options that a config.json of transformers means. Keys that it lacks have the values
// of transformers' configurations. Throws an Error (kInvalidArgument) for a network that
// models/ernie doesn't have (another model_type, relative positions, a decoder), and those of
// ErnieOptionsFromJson and CheckErnieOptions.
ErnieOptions ErnieOptionsOfHuggingFace(std::string_view json, ErnieSource from);

// Writes a folder that models/ernie:finetune takes as --initial_model, and models/ernie:predict as
// --model if the source has the weights that guess words. The program returns scores of words (if
// there are weights for these), the vectors of tokens [N, L, hidden], and, if there are weights for
// these, the pooled vector [N, hidden], the scores of the next sentence [N, 2] and the
// probabilities of a classifier [N, classes]. Returns a report. Throws what WriteConverted,
// ReadVocabulary and ErnieOptionsOfHuggingFace throw, and an Error (kInvalidArgument) for a
// vocabulary of more tokens than the network has.
std::string ConvertErnie(const ErnieConversion& conversion);

}  // namespace skiff::models
