// Fills in the masks of a sentence with a pre-trained ERNIE.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/tokenizer.h"
#include "framework/text/vocabulary.h"
#include "models/common/saved_model.h"

namespace skiff::models {

struct MaskGuess {
  std::string token;
  double probability = 0;
};

class MaskFiller {
 public:
  // Loads a model that a pre-training saved (OUTPUT_DIR/model). Throws an Error: what
  // LoadInferenceModel and ReadErnieVocabulary throw; kInvalidArgument if the model isn't for
  // guessing masked tokens, or has another vocabulary size than the file.
  explicit MaskFiller(const std::string& model_directory);

  // Returns, for each [MASK] of the text in order, the `count` most probable tokens, the best
  // first. Throws an Error (kInvalidArgument) for a text without [MASK], with more of them or more
  // tokens than the model takes, for a count below 1, and if the model returns anything but scores
  // of tokens.
  std::vector<std::vector<MaskGuess>> Fill(std::string_view text, int64_t count);

 private:
  FeedList Feeds(const std::string& text, std::vector<int64_t>* places) const;
  // `scores`: of all tokens.
  std::vector<MaskGuess> Best(std::span<const float> scores, int64_t count) const;

  text::Vocabulary vocabulary_;
  text::Tokenizer tokenizer_;
  SavedModel model_;
  int64_t length_ = 0;
  int64_t most_masked_ = 0;
};

}  // namespace skiff::models
