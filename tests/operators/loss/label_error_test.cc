#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/loss/loss_ops.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

// Two rows of three classes, the second with the label 3.
std::string MessageOf(const std::string& type, const std::string& scores, const std::string& result,
                      const std::string& gradient) {
  OpRegistry registry;
  RegisterLossOps(registry);
  Op op(type);
  op.SetInput(scores, {"scores"}).SetInput("Label", {"label"}).SetOutput(result, {"result"});
  harness::NamedTensors inputs{
      {"scores", Tensor::FromValues<float>({2, 3}, {0.2f, 0.3f, 0.5f, 0.2f, 0.3f, 0.5f})},
      {"label", Tensor::FromValues<int64_t>({2, 1}, {0, 3})}};
  if (!gradient.empty()) {
    op.SetInput(gradient, {"gradient"});
    inputs["gradient"] = Tensor::FromValues<float>({2, 1}, {1, 1});
  }
  harness::PreparedOp prepared(registry, op, inputs);
  prepared.Load(inputs, 0x7f);
  try {
    prepared.Run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    return error.what();
  }
  return "no error";
}

constexpr const char* kFound =
    ": the label of row 1 is 3, expected a class in [0, 3) or ignore_index = -100";

TEST(Label, OutsideOfTheClassesIsAnErrorOfTheLoss) {
  EXPECT_EQ(MessageOf("cross_entropy", "X", "Y", ""), std::string("cross_entropy") + kFound);
  EXPECT_EQ(MessageOf("softmax_with_cross_entropy", "Logits", "Loss", ""),
            std::string("softmax_with_cross_entropy") + kFound);
}

TEST(Label, OutsideOfTheClassesIsAnErrorOfTheGradient) {
  EXPECT_EQ(MessageOf("cross_entropy_grad", "X", "X@GRAD", "Y@GRAD"),
            std::string("cross_entropy_grad") + kFound);
  EXPECT_EQ(MessageOf("softmax_with_cross_entropy_grad", "Softmax", "Logits@GRAD", "Loss@GRAD"),
            std::string("softmax_with_cross_entropy_grad") + kFound);
}

}  // namespace
}  // namespace skiff
