// Labels that aren't classes, on a device: the Error comes when the run is waited for, and is the
// CPU's. Skipped if there is no device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "operators/loss/loss_ops.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

constexpr int64_t kClasses = 3;

struct LossOp {
  std::string type;
  std::vector<std::string> scores;   // slots of what has a number for each class
  std::vector<std::string> numbers;  // slots of what has a number for each row
  std::string result;                // slot; of the same dims as the first input
  std::vector<std::string> by_row;   // slots of results with a number for each row
  bool use_softmax = true;
};

const std::vector<LossOp>& LossOps() {
  static const auto& ops = *new std::vector<LossOp>{
      {"cross_entropy", {"X"}, {}, "", {"Y"}},
      {"cross_entropy_grad", {"X"}, {"Y@GRAD"}, "X@GRAD", {}},
      {"cross_entropy2", {"X"}, {}, "", {"Y", "MatchX"}},
      {"softmax_with_cross_entropy", {"Logits"}, {}, "Softmax", {"Loss"}},
      {"softmax_with_cross_entropy", {"Logits"}, {}, "Softmax", {"Loss"}, false},
      {"softmax_with_cross_entropy_grad", {"Softmax"}, {"Loss@GRAD"}, "Logits@GRAD", {}},
      {"softmax_with_cross_entropy_grad", {"Softmax"}, {"Loss@GRAD"}, "Logits@GRAD", {}, false},
      {"nll_loss", {"X"}, {}, "", {"Out"}},
      {"nll_loss_grad", {"X"}, {"Out@GRAD"}, "X@GRAD", {}},
  };
  return ops;
}

// Returns the message of the Error, empty if there is none, and the results.
template <typename Label>
std::string ErrorOn(Place place, const LossOp& loss, const std::vector<Label>& labels) {
  const auto rows = static_cast<int64_t>(labels.size());
  OpRegistry registry;
  RegisterLossOps(registry);
  Op op(loss.type);
  op.SetInput("Label", {"label"});
  if (!loss.use_softmax) op.SetAttr("use_softmax", false);
  NamedTensors inputs{{"label", Tensor::FromValues<Label>({rows, 1}, labels)}};
  for (const std::string& slot : loss.scores) {
    op.SetInput(slot, {slot});
    inputs[slot] = Tensor::FromValues<float>(
        {rows, kClasses}, std::vector<float>(static_cast<size_t>(rows * kClasses), 0.5f));
  }
  for (const std::string& slot : loss.numbers) {
    op.SetInput(slot, {slot});
    inputs[slot] = Tensor::FromValues<float>({rows, 1}, std::vector<float>(labels.size(), 1));
  }
  if (!loss.result.empty()) op.SetOutput(loss.result, {"result"});
  for (const std::string& slot : loss.by_row) op.SetOutput(slot, {slot});
  if (loss.type == "cross_entropy2") op.SetOutput("XShape", {"XShape"});
  if (loss.type.starts_with("nll_loss")) op.SetAttr("reduction", "none");
  if (loss.type == "nll_loss") op.SetOutput("Total_weight", {"total"});
  if (loss.type == "nll_loss_grad") {
    op.SetInput("Total_weight", {"total"});
    inputs["total"] = Tensor::FromValues<float>({}, {1});
  }
  PreparedOp prepared(registry, op, inputs, {.place = place});
  // Twice, since a kernel that has refused something runs again.
  std::string message;
  for (int i = 0; i < 2; ++i) {
    prepared.Load(inputs, 0xFF);
    message.clear();
    try {
      prepared.Run();
      prepared.Wait();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      message = error.what();
    }
    EXPECT_TRUE(prepared.Faults().empty());
  }
  return message;
}

template <typename Label>
void ExpectTheErrorsOfTheCpu() {
  // The first row is told of several, and no row is read or written beyond its classes.
  const std::vector<std::vector<Label>> batches = {
      {0, 1, 2}, {0, 3, 1, -1}, {-1, 0}, {-100, 2, -100, 1 << 30}, {1, -(1 << 30), 3}};
  for (const LossOp& loss : LossOps()) {
    SCOPED_TRACE(loss.type + (loss.use_softmax ? "" : ", probabilities"));
    for (const std::vector<Label>& labels : batches) {
      const std::string expected = ErrorOn(Place::Cpu(), loss, labels);
      EXPECT_EQ(ErrorOn(CudaPlace(), loss, labels), expected);
      EXPECT_EQ(expected.empty(), &labels == batches.data());
    }
  }
}

TEST(LabelOnCuda, OutsideOfTheClassesIsToldByRowAndValue) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  ExpectTheErrorsOfTheCpu<int64_t>();
  ExpectTheErrorsOfTheCpu<int32_t>();
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(LabelOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
