// Questions about entities as samples: the answer is masked, and nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/text/instance.h"
#include "framework/text/tokenizer.h"
#include "framework/training/sample_source.h"
#include "models/common/world_corpus.h"

namespace skiff::models {

struct QuestionOptions {
  int64_t length = 128;      // L
  int64_t most_masked = 20;  // M
  int64_t task_id = 0;
};

// Gives the feeds of a PretrainingSource; the sentence label is kIgnoredLabel. A question is
// answered if the model gets all the tokens of weight 1 in its row right.
class QuestionSource final : public training::SampleSource {
 public:
  // The tokenizer may go once the source is made. Throws Error (kInvalidArgument) that names the
  // question if it is longer than L, or if its answer has more than M tokens or a word outside the
  // vocabulary; also if there are no questions.
  QuestionSource(const text::Tokenizer& tokenizer, std::span<const Question> questions,
                 const QuestionOptions& options);

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  std::vector<training::FeedShape> fields() const override;
  void Read(int64_t sample, int64_t epoch, int64_t row, std::span<Tensor> fields) const override;

 private:
  struct Sample {
    text::Instance instance;
    text::MaskedTokens masked;
  };

  Sample MakeSample(const text::Tokenizer& tokenizer, const Question& question) const;

  QuestionOptions options_;
  text::TokenId pad_;
  std::vector<Sample> samples_;
};

}  // namespace skiff::models
