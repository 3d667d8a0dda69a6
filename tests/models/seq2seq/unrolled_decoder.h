// A translation network's results for each token, computed without a loop: one step after the
// other.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/tensor/ragged.h"
#include "framework/text/marks.h"
#include "framework/text/pair_reader.h"
#include "models/seq2seq/network.h"

namespace skiff::models {

class UnrolledDecoder {
 public:
  // The executor outlives it; its scope has the parameters. Translations have at most `most`
  // tokens.
  UnrolledDecoder(Executor* executor, const Seq2SeqOptions& options, size_t most)
      : executor_(executor) {
    Program startup;
    const ProgramGuard guard(&program_, &startup);
    const Seq2SeqNetwork network(options);
    const Encoded encoded = network.Encode(
        layers::Data(text::PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1}));
    Variables state = network.FirstState(encoded);
    for (size_t t = 0; t < most; ++t) {
      const Variable word = network.Embed(layers::Data(StrCat("word", t), {-1}, DType::kInt64));
      const Decoded decoded = network.Step(word, state, encoded);
      scores_.push_back(network.Scores(decoded.outputs, word).name());
      weights_.push_back(decoded.weights.name());
      state = decoded.state;
    }
  }

  struct Step {
    std::vector<double> log_probabilities;  // of each token
    std::vector<float> attention;           // to each token of the source
  };
  // Returns the step after the first tokens of a translation, fewer than `most`.
  const Step& After(const std::vector<int64_t>& source, const std::vector<int64_t>& tokens) {
    Step& step = steps_[{source, tokens}];
    if (!step.log_probabilities.empty()) return step;
    FeedList feeds = {{text::PairReader::kSource, RaggedTensor<int64_t>({source})}};
    for (size_t t = 0; t < scores_.size(); ++t) {
      // The step doesn't depend on the words behind it.
      const int64_t word = t > 0 && t <= tokens.size() ? tokens[t - 1] : text::kBeginId;
      feeds.push_back({StrCat("word", t), Tensor::FromValues({1}, std::vector<int64_t>{word})});
    }
    const std::vector<Tensor> found =
        executor_->Run(program_, feeds, {scores_.at(tokens.size()), weights_.at(tokens.size())});
    double sum = 0;
    for (const float score : found[0].values<float>()) sum += std::exp(double{score});
    for (const float score : found[0].values<float>()) {
      step.log_probabilities.push_back(score - std::log(sum));
    }
    step.attention = found[1].ToVector<float>();
    return step;
  }

  // Steps are computed once: this is to be called when parameters have changed.
  void Forget() { steps_.clear(); }

 private:
  Executor* executor_;
  Program program_;
  std::vector<std::string> scores_, weights_;
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, Step> steps_;
};

}  // namespace skiff::models
