// Errors of the element-wise losses, which the cases can't express.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/loss/loss_ops.h"
#include "tests/harness/error_text.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

// An op under construction, with the tensors that it reads.
struct Call {
  explicit Call(const std::string& type) : op(type) {}
  Call& Input(const char* slot, const Shape& shape, DType dtype = DType::kFloat32) {
    op.SetInput(slot, {slot});
    inputs[slot] = Tensor(shape, dtype);
    return *this;
  }
  Call& Output(const char* slot) {
    op.SetOutput(slot, {std::string(slot) + "_out"});
    return *this;
  }
  template <typename T>
  Call& Attr(const char* name, T value) {
    op.SetAttr(name, value);
    return *this;
  }
  std::string Message() const {
    OpRegistry registry;
    RegisterLossOps(registry);
    return InvalidArgumentText([&] { harness::PreparedOp prepared(registry, op, inputs); });
  }
  Op op;
  harness::NamedTensors inputs;
};

TEST(NllLoss, WantsLabelsAndWeightsOfTheClasses) {
  const auto loss = [](const Shape& x, const Shape& label, const Shape& weight) {
    return Call("nll_loss")
        .Input("X", x)
        .Input("Label", label, DType::kInt64)
        .Input("Weight", weight)
        .Output("Out")
        .Output("Total_weight");
  };
  EXPECT_EQ(loss({3}, {}, {3}).Message(),
            "nll_loss: X is of shape [3], expected [n, classes, ...]");
  EXPECT_EQ(loss({2, 3, 4}, {2, 5}, {3}).Message(),
            "nll_loss: Label is of shape [2, 5], expected [2, 4]");
  EXPECT_EQ(loss({2, 3}, {2}, {2}).Message(),
            "nll_loss: Weight is float32 [2], expected float32 [3]");
  EXPECT_THAT(loss({2, 3}, {2}, {3}).Attr("reduction", std::string("batchmean")).Message(),
              HasSubstr("reduction = \"batchmean\""));
}

TEST(HuberLoss, WantsOneShapeADtypeAndADelta) {
  const auto loss = [](const Shape& y, DType dtype) {
    return Call("huber_loss")
        .Input("X", {2, 3})
        .Input("Y", y, dtype)
        .Output("Out")
        .Output("Residual");
  };
  EXPECT_EQ(loss({2, 1}, DType::kFloat32).Attr("delta", 1.0f).Message(),
            "huber_loss: Y is float32 [2, 1], expected float32 [2, 3]");
  EXPECT_EQ(loss({2, 3}, DType::kFloat64).Attr("delta", 1.0f).Message(),
            "huber_loss: Y is float64 [2, 3], expected float32 [2, 3]");
  EXPECT_THAT(loss({2, 3}, DType::kFloat32).Message(), HasSubstr("delta"));
  EXPECT_THAT(loss({2, 3}, DType::kFloat32).Attr("delta", -1.0f).Message(),
              HasSubstr("delta = -1.0, expected at least 0"));
}

TEST(LogLoss, WantsColumns) {
  EXPECT_EQ(Call("log_loss")
                .Input("Predicted", {4, 2})
                .Input("Labels", {4, 2})
                .Output("Loss")
                .Attr("epsilon", 1e-4f)
                .Message(),
            "log_loss: Predicted is float32 [4, 2], expected float32 [-1, 1]");
}

TEST(MarginRankLoss, WantsColumns) {
  EXPECT_EQ(Call("margin_rank_loss")
                .Input("X1", {4})
                .Input("X2", {4})
                .Input("Label", {4})
                .Output("Out")
                .Output("Activated")
                .Message(),
            "margin_rank_loss: Label is float32 [4], expected float32 [-1, 1]");
}

TEST(SmoothL1Loss, WantsRowsAndBothWeightsOrNone) {
  const auto loss = [](const Shape& shape) {
    return Call("smooth_l1_loss").Input("X", shape).Input("Y", shape).Output("Out").Output("Diff");
  };
  EXPECT_EQ(loss({4}).Message(), "smooth_l1_loss: X has shape [4], expected at least 2 dims");
  EXPECT_EQ(loss({4, 2}).Input("InsideWeight", {4, 2}).Message(),
            "smooth_l1_loss: only one of InsideWeight and OutsideWeight is given, expected both or "
            "none");
  EXPECT_THAT(loss({4, 2}).Attr("sigma", 0.0f).Message(),
              HasSubstr("sigma = 0.0, expected a number other than 0"));
}

TEST(LabelSmooth, WantsAPriorOfTheClasses) {
  EXPECT_EQ(
      Call("label_smooth").Input("X", {4, 3}).Input("PriorDist", {1, 4}).Output("Out").Message(),
      "label_smooth: PriorDist has shape [1, 4], expected an element for each of the 3 "
      "classes of X [4, 3]");
  EXPECT_EQ(Call("label_smooth").Input("X", Shape()).Output("Out").Message(),
            "label_smooth: X is of rank 0, expected at least one dim");
}

TEST(KldivLoss, WantsAReductionAndElementsToDivideBy) {
  const auto loss = [](const Shape& shape, const std::string& reduction) {
    return Call("kldiv_loss")
        .Input("X", shape)
        .Input("Target", shape)
        .Output("Loss")
        .Attr("reduction", reduction)
        .Message();
  };
  EXPECT_THAT(
      loss({4, 3}, "all"),
      HasSubstr("reduction = \"all\", expected \"none\", \"batchmean\", \"mean\" or \"sum\""));
  EXPECT_EQ(loss({0, 3}, "mean"),
            "kldiv_loss: X of shape [0, 3] has no elements, expected at least one for reduction "
            "mean");
  EXPECT_EQ(loss(Shape(), "batchmean"),
            "kldiv_loss: X is of rank 0, expected at least one dim for reduction batchmean");
}

TEST(SigmoidCrossEntropyWithLogits, WantsWeightsOfTheLogitsShape) {
  EXPECT_EQ(
      Call("sigmoid_cross_entropy_with_logits")
          .Input("X", {4, 3})
          .Input("Label", {4, 3})
          .Input("pos_weight", {3})
          .Output("Out")
          .Message(),
      "sigmoid_cross_entropy_with_logits: pos_weight is float32 [3], expected float32 [4, 3]");
}

}  // namespace
}  // namespace skiff
