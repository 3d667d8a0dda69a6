// Classifies texts with a trained text classifier.
#pragma once

#include <string>
#include <vector>

#include "framework/text/tokenizer.h"
#include "framework/text/vocabulary.h"
#include "models/common/saved_model.h"

namespace skiff::models {

class TextLabeller {
 public:
  // Loads a model that a training saved (OUTPUT_DIR/model). Throws an Error: what
  // LoadInferenceModel and ReadVocabulary throw; kInvalidArgument if the model isn't a text
  // classifier.
  explicit TextLabeller(const std::string& model_directory);

  // Returns the probabilities of the classes for each text, [texts][classes]. A text without
  // tokens counts as one unknown token. Throws an Error: what ModelOutput throws if the model
  // returns anything else.
  std::vector<std::vector<float>> Classify(const std::vector<std::string>& texts);

 private:
  text::Vocabulary vocabulary_;
  text::Tokenizer tokenizer_;
  SavedModel model_;
};

}  // namespace skiff::models
