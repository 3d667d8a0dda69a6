// Classifies texts with a trained text classifier.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "models/common/text/tokenizer.h"
#include "models/common/text/vocabulary.h"

namespace skiff::models {

class TextLabeller {
 public:
  // Loads a model that a training saved (OUTPUT_DIR/model). Throws an Error: what
  // LoadInferenceModel and ReadVocabulary throw; kInvalidArgument if the model isn't a text
  // classifier.
  explicit TextLabeller(const std::string& model_directory);

  // Returns the probabilities of the classes for each text, [texts][classes]. A text without
  // tokens counts as one unknown token.
  std::vector<std::vector<float>> Classify(const std::vector<std::string>& texts);

 private:
  text::Vocabulary vocabulary_;
  text::Tokenizer tokenizer_;
  Executor executor_;
  std::unique_ptr<Program> program_;
  std::string probabilities_;
  std::unique_ptr<CompiledProgram> compiled_;
};

}  // namespace skiff::models
