// Labels that aren't classes, on every kernel that reads labels: each dtype of scores and of
// labels, forward and backward, with and without softmax.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/loss/loss_ops.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

constexpr int64_t kClasses = 3;

struct LossOp {
  std::string type;
  std::string scores;  // slots
  std::string result;
  std::string gradient;  // of the loss; empty for a forward op
  bool use_softmax = true;
};

const std::vector<LossOp>& LossOps() {
  static const auto& ops = *new std::vector<LossOp>{
      {"cross_entropy", "X", "Y", ""},
      {"cross_entropy_grad", "X", "X@GRAD", "Y@GRAD"},
      {"softmax_with_cross_entropy", "Logits", "Loss", ""},
      {"softmax_with_cross_entropy", "Logits", "Loss", "", false},
      {"softmax_with_cross_entropy_grad", "Softmax", "Logits@GRAD", "Loss@GRAD"},
      {"softmax_with_cross_entropy_grad", "Softmax", "Logits@GRAD", "Loss@GRAD", false},
      {"nll_loss", "X", "Out", ""},
      {"nll_loss_grad", "X", "X@GRAD", "Out@GRAD"},
  };
  return ops;
}

struct Outcome {
  std::string error;
  std::vector<double> result;  // of what the op computes first
};

template <typename T, typename Label>
Outcome RunLoss(const LossOp& loss, const std::vector<int64_t>& labels, int64_t ignore_index = -100,
                int64_t classes = kClasses) {
  const auto rows = static_cast<int64_t>(labels.size());
  OpRegistry registry;
  RegisterLossOps(registry);
  Op op(loss.type);
  op.SetInput(loss.scores, {"scores"}).SetInput("Label", {"label"});
  op.SetOutput(loss.result, {"result"});
  op.SetAttr("ignore_index", static_cast<int32_t>(ignore_index));
  if (!loss.use_softmax) op.SetAttr("use_softmax", false);
  const bool has_total = loss.type.starts_with("nll_loss");
  if (has_total) op.SetAttr("reduction", "none");
  if (has_total && loss.gradient.empty()) op.SetOutput("Total_weight", {"total"});
  std::vector<T> scores;
  for (int64_t i = 0; i < rows * classes; ++i) {
    scores.push_back(static_cast<T>(std::vector<double>{0.2, 0.3, 0.5}[i % kClasses]));
  }
  harness::NamedTensors inputs{
      {"scores", Tensor::FromValues<T>({rows, classes}, scores)},
      {"label", Tensor::FromValues<Label>({rows, 1}, {labels.begin(), labels.end()})}};
  if (!loss.gradient.empty()) {
    op.SetInput(loss.gradient, {"gradient"});
    inputs["gradient"] = Tensor::FromValues<T>({rows, 1}, std::vector<T>(labels.size(), 1));
    if (has_total) {
      op.SetInput("Total_weight", {"total"});
      inputs["total"] = Tensor::FromValues<T>({}, {1});
    }
  }
  harness::PreparedOp prepared(registry, op, inputs);
  prepared.Load(inputs, 0x7f);
  Outcome outcome;
  try {
    prepared.Run();
    const Tensor result = prepared.Outputs().at("result");
    for (const T value : result.values<T>()) outcome.result.push_back(static_cast<double>(value));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    outcome.error = error.what();
  }
  EXPECT_TRUE(prepared.Faults().empty()) << prepared.Faults().front();
  return outcome;
}

// Calls body(run) with RunLoss of each pair of dtypes.
template <typename Body>
void ForEachKernel(const Body& body) {
  for (const LossOp& loss : LossOps()) {
    SCOPED_TRACE(loss.type + (loss.use_softmax ? "" : ", probabilities"));
    body(loss, RunLoss<float, int64_t>, std::numeric_limits<int64_t>());
    body(loss, RunLoss<float, int32_t>, std::numeric_limits<int32_t>());
    body(loss, RunLoss<double, int64_t>, std::numeric_limits<int64_t>());
    body(loss, RunLoss<double, int32_t>, std::numeric_limits<int32_t>());
  }
}

std::string Message(const LossOp& loss, int64_t row, int64_t label, int64_t ignore_index = -100,
                    int64_t classes = kClasses) {
  return StrCat(loss.type, ": the label of row ", row, " is ", label, ", expected a class in [0, ",
                classes, ") or ignore_index = ", ignore_index);
}

TEST(Label, OutsideOfTheClassesIsToldByRowAndValue) {
  ForEachKernel([](const LossOp& loss, const auto& run, const auto& limits) {
    for (const int64_t label :
         {kClasses, int64_t{-1}, int64_t{-99}, int64_t{limits.min()}, int64_t{limits.max()}}) {
      EXPECT_EQ(run(loss, {0, label}, -100, kClasses).error, Message(loss, 1, label));
    }
    EXPECT_EQ(run(loss, {0, kClasses - 1}, -100, kClasses).error, "");
  });
}

TEST(Label, EqualToIgnoreIndexCountsNothing) {
  ForEachKernel([](const LossOp& loss, const auto& run, const auto&) {
    const bool is_gradient = !loss.gradient.empty();
    const size_t row_size = is_gradient ? kClasses : 1;
    // Outside the classes, negative or not, or one of them.
    for (const int64_t ignored : {int64_t{-1}, int64_t{-100}, int64_t{255}, int64_t{1}}) {
      SCOPED_TRACE(ignored);
      const Outcome outcome = run(loss, {ignored, 2}, ignored, kClasses);
      ASSERT_EQ(outcome.error, "");
      ASSERT_EQ(outcome.result.size(), 2 * row_size);
      for (size_t i = 0; i < row_size; ++i) EXPECT_EQ(outcome.result[i], 0);
      EXPECT_NE(outcome.result.back(), 0);
    }
    // Another ignore_index doesn't make the usual one a class.
    EXPECT_EQ(run(loss, {0, -100}, -1, kClasses).error, Message(loss, 1, -100, -1));
  });
}

// Threads meet the bad rows in any order; the message doesn't depend on it.
TEST(Label, OutsideOfTheClassesNamesTheFirstOfManyRows) {
  std::vector<int64_t> labels(60000, 1);
  for (const size_t row : {59999u, 41234u, 23456u, 31000u}) labels[row] = 7;
  for (const LossOp& loss : LossOps()) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ((RunLoss<float, int64_t>(loss, labels)).error, Message(loss, 23456, 7));
    }
  }
}

TEST(Label, IsNoClassWhereThereAreNone) {
  ForEachKernel([](const LossOp& loss, const auto& run, const auto&) {
    EXPECT_EQ(run(loss, {-1, 0}, -1, 0).error, Message(loss, 1, 0, -1, 0));
    EXPECT_EQ(run(loss, {-1, -1}, -1, 0).error, "");
  });
}

TEST(Label, OfAnEmptyBatchIsNoMistake) {
  ForEachKernel([](const LossOp& loss, const auto& run, const auto&) {
    const Outcome outcome = run(loss, {}, -100, kClasses);
    EXPECT_EQ(outcome.error, "");
    EXPECT_TRUE(outcome.result.empty());
  });
}

}  // namespace
}  // namespace skiff
