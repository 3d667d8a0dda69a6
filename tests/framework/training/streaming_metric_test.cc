#include "framework/training/streaming_metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/tensor/philox.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::FromValues<float>(shape, values);
}

Tensor Ids(const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>({std::ssize(values), 1}, values);
}

// Samples with few different scores, so that many are equal.
struct Samples {
  static constexpr int64_t kCount = 500;
  static constexpr int64_t kClasses = 4;
  std::vector<float> scores;    // [kCount, kClasses]
  std::vector<int64_t> labels;  // [kCount]

  Samples() {
    const Philox random({.seed = 7, .op_id = 1});
    for (uint64_t i = 0; i < kCount; ++i) {
      const Philox::Block words = random.At(i);
      for (const uint32_t word : words) scores.push_back(static_cast<float>(word % 8) / 8);
      labels.push_back(words[0] / 16 % kClasses);
      // Most labels are those of high scores.
      if (words[1] % 3 > 0) {
        const auto row = scores.end() - kClasses;
        labels.back() = std::max_element(row, scores.end()) - row;
      }
    }
  }
  float score(int64_t sample, int64_t of_class) const {
    return scores[static_cast<size_t>(sample * kClasses + of_class)];
  }
  // The samples [begin, end) as a batch.
  std::vector<Tensor> Batch(int64_t begin, int64_t end) const {
    return {Floats({end - begin, kClasses},
                   {scores.begin() + begin * kClasses, scores.begin() + end * kClasses}),
            Ids({labels.begin() + begin, labels.begin() + end})};
  }
};

// Adds the samples in batches of different sizes.
void AddInBatches(const Samples& samples, StreamingMetric* metric) {
  for (int64_t begin = 0, size = 1; begin < Samples::kCount; begin += size, size += 7) {
    metric->Add(samples.Batch(begin, std::min(begin + size, Samples::kCount)));
  }
}

TEST(TopKAccuracy, IsTheShareOfLabelsAmongTheBest) {
  const Samples samples;
  for (int64_t k = 1; k <= 5; ++k) {
    int64_t correct = 0;
    for (int64_t i = 0; i < Samples::kCount; ++i) {
      std::vector<int64_t> order = {0, 1, 2, 3};
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return samples.score(i, a) > samples.score(i, b);
      });
      const auto place = std::ranges::find(order, samples.labels[static_cast<size_t>(i)]);
      if (place - order.begin() < k) ++correct;
    }
    TopKAccuracy metric(k);
    AddInBatches(samples, &metric);
    EXPECT_EQ(metric.Value(), static_cast<double>(correct) / 500) << k;
    EXPECT_EQ(metric.Value() == 1.0, k >= 4);
  }
}

TEST(ConfusionMatrix, CountsTheLargestScoreOrTheGivenClass) {
  ConfusionMatrix by_scores(3);
  by_scores.Add(
      std::vector{Floats({4, 3}, {1, 2, 0, 5, 5, 1, 0, 0, 1, 3, 2, 1}), Ids({1, 0, 1, 2})});
  ConfusionMatrix by_classes(3);
  by_classes.Add(std::vector{Tensor::FromValues<int32_t>({4}, {1, 0, 2, 0}), Ids({1, 0, 1, 2})});
  for (const ConfusionMatrix* matrix : {&by_scores, &by_classes}) {
    EXPECT_EQ(matrix->Count(1, 1), 1);
    EXPECT_EQ(matrix->Count(0, 0), 1);
    EXPECT_EQ(matrix->Count(1, 2), 1);
    EXPECT_EQ(matrix->Count(2, 0), 1);
    EXPECT_EQ(matrix->Count(2, 2), 0);
    EXPECT_EQ(matrix->Text(),
              "label \\ predicted 0 1 2\n"
              "                0 1 0 0\n"
              "                1 0 1 1\n"
              "                2 1 0 0\n");
  }
  by_scores.Reset();
  EXPECT_EQ(by_scores.Count(1, 1), 0);
}

TEST(ConfusionMatrix, GivesTheScoresOfItsDefinitions) {
  const Samples samples;
  ConfusionMatrix matrix(Samples::kClasses);
  AddInBatches(samples, &matrix);
  double precisions = 0;
  double recalls = 0;
  double f1s = 0;
  double correct = 0;
  for (int64_t c = 0; c < Samples::kClasses; ++c) {
    double right = 0;
    double of_class = 0;
    double taken_for_it = 0;
    for (int64_t i = 0; i < Samples::kCount; ++i) {
      const float* row = &samples.scores[static_cast<size_t>(i * Samples::kClasses)];
      const int64_t predicted = std::max_element(row, row + Samples::kClasses) - row;
      const int64_t label = samples.labels[static_cast<size_t>(i)];
      right += predicted == c && label == c ? 1 : 0;
      of_class += label == c ? 1 : 0;
      taken_for_it += predicted == c ? 1 : 0;
    }
    const double precision = right / taken_for_it;
    const double recall = right / of_class;
    EXPECT_DOUBLE_EQ(matrix.Precision(c), precision);
    EXPECT_DOUBLE_EQ(matrix.Recall(c), recall);
    EXPECT_DOUBLE_EQ(matrix.F1(c), 2 * precision * recall / (precision + recall));
    precisions += precision / 4;
    recalls += recall / 4;
    f1s += matrix.F1(c) / 4;
    correct += right / Samples::kCount;
  }
  EXPECT_DOUBLE_EQ(matrix.MacroPrecision(), precisions);
  EXPECT_DOUBLE_EQ(matrix.MacroRecall(), recalls);
  EXPECT_DOUBLE_EQ(matrix.MacroF1(), f1s);
  EXPECT_DOUBLE_EQ(matrix.Accuracy(), correct);
  const std::vector<std::pair<ClassScore, double>> values = {
      {ClassScore::kAccuracy, correct},
      {ClassScore::kMacroPrecision, precisions},
      {ClassScore::kMacroRecall, recalls},
      {ClassScore::kMacroF1, f1s}};
  for (const auto& [score, expected] : values) {
    ConfusionMatrix metric(Samples::kClasses, score);
    AddInBatches(samples, &metric);
    EXPECT_DOUBLE_EQ(metric.Value(), expected);
  }
}

// A class that nobody has and nobody predicts counts in no mean; one that is never predicted has
// precision 0.
TEST(ConfusionMatrix, KnowsClassesThatDontOccur) {
  ConfusionMatrix matrix(4);
  EXPECT_TRUE(std::isnan(matrix.Value()));
  EXPECT_TRUE(std::isnan(matrix.Accuracy()));
  matrix.Add(std::vector{Ids({0, 0, 1}), Ids({0, 2, 1})});
  EXPECT_EQ(matrix.Precision(2), 0);
  EXPECT_EQ(matrix.Recall(2), 0);
  EXPECT_EQ(matrix.F1(3), 0);
  EXPECT_DOUBLE_EQ(matrix.MacroPrecision(), (0.5 + 1 + 0) / 3);
  EXPECT_DOUBLE_EQ(matrix.MacroRecall(), (1 + 1 + 0) / 3.0);
}

// The definition: pairs of a sample of class 1 and one of class 0.
double AucOfPairs(const std::vector<float>& scores, const std::vector<int64_t>& labels) {
  double in_order = 0;
  double pairs = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t k = 0; k < labels.size(); ++k) {
      if (labels[i] != 1 || labels[k] != 0) continue;
      pairs += 1;
      in_order += scores[i] > scores[k] ? 1 : scores[i] == scores[k] ? 0.5 : 0;
    }
  }
  return in_order / pairs;
}

TEST(Auc, CountsPairsInOrder) {
  const Samples samples;
  std::vector<float> scores;
  std::vector<int64_t> labels;
  Auc exact;
  Auc of_both_columns;
  Auc binned(1 << 20);
  for (int64_t i = 0; i < Samples::kCount; ++i) {
    scores.push_back(samples.score(i, 0));
    labels.push_back(samples.labels[static_cast<size_t>(i)] == 0 ? 1 : 0);
    const Tensor label = Ids({labels.back()});
    exact.Add(std::vector{Floats({1}, {scores.back()}), label});
    of_both_columns.Add(std::vector{Floats({1, 2}, {1 - scores.back(), scores.back()}), label});
    binned.Add(std::vector{Floats({1, 1}, {scores.back()}), label});
  }
  const double expected = AucOfPairs(scores, labels);
  EXPECT_GT(expected, 0.6);
  EXPECT_DOUBLE_EQ(exact.Value(), expected);
  EXPECT_DOUBLE_EQ(of_both_columns.Value(), expected);
  EXPECT_DOUBLE_EQ(binned.Value(), expected) << "no bin has two scores";
}

// Scores 0.1 and 0.3 are of one bin of two, 0.6 and 0.9 of the other, 1 of a third.
TEST(Auc, TakesScoresOfOneBinForEqual) {
  Auc binned(2);
  binned.Add(std::vector{Floats({5}, {0.1f, 0.3f, 0.6f, 0.9f, 1.0f}), Ids({1, 0, 0, 1, 1})});
  EXPECT_DOUBLE_EQ(binned.Value(), AucOfPairs({0, 0, 1, 1, 2}, {1, 0, 0, 1, 1}));
}

TEST(Auc, NeedsBothClasses) {
  Auc auc;
  EXPECT_TRUE(std::isnan(auc.Value()));
  auc.Add(std::vector{Floats({2}, {1, 2}), Ids({1, 1})});
  EXPECT_TRUE(std::isnan(auc.Value()));
  auc.Add(std::vector{Floats({1}, {0}), Ids({0})});
  EXPECT_EQ(auc.Value(), 1);
  auc.Reset();
  EXPECT_TRUE(std::isnan(auc.Value()));
}

TEST(Perplexity, WeighsLossesByTheirTokens) {
  Perplexity perplexity;
  EXPECT_TRUE(std::isnan(perplexity.Value()));
  perplexity.Add(std::vector{Floats({}, {2.0f}), Ids({3})});
  perplexity.Add(std::vector{Tensor::FromValues<double>({1}, {0.5}), Floats({1}, {5.0f})});
  EXPECT_DOUBLE_EQ(perplexity.Value(), std::exp((2.0 * 3 + 0.5 * 5) / 8));
}

// A batch that is refused leaves the metric as it was.
TEST(StreamingMetric, RefusesWhatItCannotCount) {
  const Tensor scores = Floats({2, 3}, {1, 2, 3, 3, 2, 1});
  const Tensor labels = Ids({0, 1});
  TopKAccuracy top(1);
  ConfusionMatrix matrix(3);
  Auc auc(10);
  Perplexity perplexity;
  top.Add(std::vector{scores, labels});
  const double before = top.Value();
  struct Case {
    StreamingMetric* metric;
    std::vector<Tensor> values;
    ErrorCode code;
    std::string message;
  };
  const std::vector<Case> cases = {
      {&top,
       {scores},
       ErrorCode::kInvalidArgument,
       "gets 1 tensors, expected 2: scores and labels"},
      {&top,
       {scores, Ids({0, 3})},
       ErrorCode::kOutOfRange,
       "TopKAccuracy: label 3 is no class, expected one in [0, 3)"},
      {&top, {scores, Ids({0})}, ErrorCode::kInvalidArgument, "there are 1 labels for 2 samples"},
      {&top,
       {scores, scores},
       ErrorCode::kInvalidArgument,
       "labels have the shape [2, 3], expected [N, 1]"},
      {&top,
       {labels, labels},
       ErrorCode::kInvalidArgument,
       "scores are int64, expected float32 or float64"},
      {&top,
       {Floats({1, 2}, {1, static_cast<float>(kNan)}), Ids({0})},
       ErrorCode::kInvalidArgument,
       "a score is NaN"},
      {&matrix,
       {Floats({2, 2}, {1, 2, 3, 4}), labels},
       ErrorCode::kInvalidArgument,
       "scores have the shape [2, 2], expected [N, 3]"},
      {&matrix,
       {Ids({0, -1}), labels},
       ErrorCode::kOutOfRange,
       "ConfusionMatrix: prediction -1 is no class"},
      {&auc,
       {Floats({2}, {0.5f, 1.5f}), labels},
       ErrorCode::kOutOfRange,
       "score 1.5, expected one in [0, 1]"},
      {&auc,
       {scores, labels},
       ErrorCode::kInvalidArgument,
       "scores have the shape [2, 3], expected [N, 1]"},
      {&perplexity,
       {scores, labels},
       ErrorCode::kInvalidArgument,
       "Perplexity gets a tensor of shape [2, 3], expected one number"}};
  for (const Case& one : cases) {
    const Error error = ErrorOf([&] { one.metric->Add(one.values); });
    EXPECT_EQ(error.code(), one.code) << one.message;
    EXPECT_THAT(error.what(), HasSubstr(one.message));
  }
  EXPECT_EQ(top.Value(), before);
  EXPECT_TRUE(std::isnan(matrix.Value()));
  EXPECT_TRUE(std::isnan(auc.Value()));
  EXPECT_THAT(InvalidArgumentText([] { TopKAccuracy metric(0); }), HasSubstr("k = 0"));
  EXPECT_THAT(InvalidArgumentText([] { ConfusionMatrix metric(1); }), HasSubstr("classes = 1"));
  EXPECT_THAT(InvalidArgumentText([] { Auc metric(-1); }), HasSubstr("bins = -1"));
}

// Several objects, each with a part of the batches, give what one object with all batches gives.
TEST(StreamingMetric, MergesTheBatchesOfOthers) {
  const Samples samples;
  const auto expect_merged = [&](const std::function<std::unique_ptr<StreamingMetric>()>& make,
                                 const std::function<std::vector<Tensor>(int64_t)>& batch) {
    const auto whole = make();
    const auto merged = make();
    std::vector<std::unique_ptr<StreamingMetric>> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(make());
    // The third has none.
    for (int64_t i = 0; i < 50; ++i) {
      whole->Add(batch(i));
      parts[static_cast<size_t>(i % 2)]->Add(batch(i));
    }
    for (const auto& part : parts) merged->Merge(part->State().value());
    EXPECT_DOUBLE_EQ(merged->Value(), whole->Value());
    EXPECT_FALSE(std::isnan(whole->Value()));
    EXPECT_EQ(InvalidArgumentText([&] { merged->Merge(std::vector<double>(1)); }).substr(0, 37),
              "a state of 1 numbers is no state of a");
  };
  const auto scores = [&](int64_t i) { return samples.Batch(10 * i, 10 * i + 10); };
  expect_merged([] { return std::make_unique<TopKAccuracy>(2); }, scores);
  expect_merged([] { return std::make_unique<ConfusionMatrix>(Samples::kClasses); }, scores);
  expect_merged([] { return std::make_unique<Auc>(); },
                [&](int64_t i) {
                  return std::vector{Floats({1}, {samples.score(i, 0)}),
                                     Ids({samples.labels[static_cast<size_t>(i)] / 2})};
                });
  expect_merged([] { return std::make_unique<Perplexity>(); },
                [&](int64_t i) {
                  return std::vector{Floats({1}, {samples.score(i, 0)}), Ids({i + 1})};
                });
}

}  // namespace
}  // namespace skiff::training
