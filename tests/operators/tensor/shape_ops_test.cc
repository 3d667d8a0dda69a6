// Ops that move, repeat or cut out elements: errors, and shapes with unknown dims.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/op/grad.h"
#include "tests/operators/tensor/tensor_ops_fixture.h"

namespace skiff {
namespace {

TEST_F(TensorOps, ReshapeInfersDimsAfterAnUnknownBatchSize) {
  Declare("x", {-1, 12, 64});
  EXPECT_EQ(Infer(Unary("reshape2", {{"shape", Ints{0, 0, 4, -1}}})), (Dims{-1, 12, 4, 16}));
  EXPECT_EQ(Infer(Unary("reshape2", {{"shape", Ints{-1, 768}}})), (Dims{-1, 768}));
  EXPECT_EQ(Infer(Unary("reshape2", {{"shape", Ints{0, -1}}})), (Dims{-1, 768}));
}

TEST_F(TensorOps, StrictSqueezeDropsOnlyAxesOfExtent1) {
  Declare("x", {-1, 3});
  EXPECT_EQ(Infer(Unary("squeeze2", {{"axes", Ints{0}}, {"strict", true}})), (Dims{3}));
  ExpectInferenceError(Unary("squeeze2", {{"axes", Ints{0, -1}}, {"strict", true}}),
                       "axis 1 of X of shape [-1, 3] has the extent 3, expected 1");
}

TEST_F(TensorOps, ReshapeNamesWhatDoesNotFit) {
  Declare("x", {4, 6});
  EXPECT_NE(InferenceError(Unary("reshape2", {{"shape", Ints{5, 5}}})).find("24"),
            std::string::npos);
  EXPECT_NE(InferenceError(Unary("reshape2", {{"shape", Ints{-1, 5}}})), "");
  EXPECT_NE(InferenceError(Unary("reshape2", {{"shape", Ints{-1, -1}}})), "");
  EXPECT_NE(InferenceError(Unary("reshape2", {{"shape", Ints{4, 6, 0}}})), "");
}

// Only a plan knows the numbers of a tensor. What a program says beside it doesn't count.
TEST_F(TensorOps, ReshapeKnowsTheRankOfAShapeTensor) {
  Declare("x", {4, 6});
  Declare("shape", {3}, DType::kInt32);
  Declare("number", {1}, DType::kInt64);
  Op op = Unary("reshape2", {{"shape", Ints{}}});
  op.SetInput("Shape", {"shape"});
  EXPECT_EQ(Infer(op), (Dims{-1, -1, -1}));
  Op list = Unary("reshape2", {{"shape", Ints{-1, -1, 3}}});
  list.SetInput("ShapeTensor", {"number", "number", "number"});
  EXPECT_EQ(Infer(list), (Dims{-1, -1, -1}));
  Declare("of_any_length", {-1}, DType::kInt32);
  op.SetInput("Shape", {"of_any_length"});
  EXPECT_NE(InferenceError(op).find("expected a known number of elements"), std::string::npos);
}

TEST_F(TensorOps, TransposeRefusesWhatIsNoPermutation) {
  Declare("x", {4, 6});
  EXPECT_NE(InferenceError(Unary("transpose2", {{"axis", Ints{0, 0}}})), "");
  EXPECT_NE(InferenceError(Unary("transpose2", {{"axis", Ints{0}}})), "");
  EXPECT_NE(InferenceError(Unary("transpose2", {{"axis", Ints{0, 2}}})), "");
}

TEST_F(TensorOps, ConcatNamesTheInputThatDoesNotFit) {
  Declare("x", {4, 6});
  Declare("y", {4, 5});
  Op op("concat");
  op.SetInput("X", {"x", "y"}).SetOutput("Out", {"out"});
  EXPECT_NE(InferenceError(op).find("X[1]"), std::string::npos);
}

TEST_F(TensorOps, SplitRefusesSectionsThatDoNotAddUp) {
  Declare("x", {4, 6});
  Op op("split");
  op.SetInput("X", {"x"}).SetOutput("Out", {"a", "b"});
  EXPECT_NE(InferenceError(Op(op).SetAttr("sections", Ints{1, 2})), "");
  EXPECT_NE(InferenceError(Op(op).SetAttr("sections", Ints{-1, -1})), "");
  EXPECT_NE(InferenceError(Op(op).SetAttr("num", 3)), "");
  EXPECT_NE(InferenceError(op), "");
  EXPECT_EQ(InferenceError(Op(op).SetAttr("sections", Ints{1, -1})), "");
}

TEST_F(TensorOps, SplitRefusesMorePiecesThanOutputsAtOnce) {
  Declare("x", {-1, 6});
  Op op("split");
  op.SetInput("X", {"x"}).SetOutput("Out", {"a", "b"}).SetAttr("num", 2'000'000'000);
  EXPECT_NE(InferenceError(op).find("2000000000 pieces for 2 outputs"), std::string::npos);
}

TEST_F(TensorOps, SplitsGradientHasTheAttributesOfConcatOnly) {
  Op op("split");
  op.SetInput("X", {"x"}).SetOutput("Out", {"a", "b"}).SetAttr("num", 2).SetAttr("axis", 1);
  const auto always = [](const std::string&) { return true; };
  const std::vector<Op> grads =
      registry_.Get("split").grad(GradContext(op, registry_.Get("split"), always));
  ASSERT_EQ(grads.size(), 1u);
  EXPECT_EQ(grads[0].attrs, (AttributeMap{{"axis", 1}}));
}

TEST_F(TensorOps, SliceRefusesToDropAnAxisThatIsNotOne) {
  Declare("x", {4, 6});
  Op op("slice");
  op.SetInput("Input", {"x"}).SetOutput("Out", {"out"});
  op.attrs = {
      {"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{2}}, {"decrease_axis", Ints{0}}};
  EXPECT_NE(InferenceError(op).find("decrease_axis"), std::string::npos);
}

TEST_F(TensorOps, StackNamesTheInputThatDoesNotFit) {
  Declare("X", {4, 6});
  Declare("V", {4});
  Op stack = OpOf("stack", {}, {}, "Y");
  ExpectInferenceError(stack.SetInput("X", {"X", "V"}), "X[1] is float32 [4]");
  ExpectInferenceError(OpOf("unstack", {"X"}, {{"num", 4}}, "Y"), "num = 4 for 1 outputs");
}

TEST_F(TensorOps, PartsKeepTheLoDLevelOfTheirRows) {
  Declare("X", {-1, 4}, DType::kFloat32, 2);
  Declare("Input", {-1, 4}, DType::kFloat32, 2);
  const auto cut = [](int32_t axis) {
    return AttributeMap{{"axes", Ints{axis}}, {"starts", Ints{0}}, {"ends", Ints{1}}};
  };
  EXPECT_EQ(LodLevel(OpOf("slice", {"Input"}, cut(1))), 2);
  EXPECT_EQ(LodLevel(OpOf("slice", {"Input"}, cut(-2))), 0);
  EXPECT_EQ(LodLevel(OpOf("concat", {"X"}, {{"axis", 1}})), 2);
  EXPECT_EQ(LodLevel(OpOf("concat", {"X"}, {{"axis", 0}})), 0);
  EXPECT_EQ(LodLevel(OpOf("split", {"X"}, {{"num", 1}, {"axis", -1}})), 2);
  EXPECT_EQ(LodLevel(OpOf("stack", {"X"}, {{"axis", 1}}, "Y")), 2);
  EXPECT_EQ(LodLevel(OpOf("stack", {"X"}, {{"axis", 0}}, "Y")), 0);
}

TEST_F(TensorOps, StridedSliceRefusesWhatFluidLeavesUndefined) {
  Declare("Input", {6});
  const auto error = [&](int32_t start, int32_t end, int32_t stride) {
    return InferenceError(OpOf("strided_slice", {"Input"},
                               {{"axes", Ints{0}},
                                {"starts", Ints{start}},
                                {"ends", Ints{end}},
                                {"strides", Ints{stride}}}));
  };
  EXPECT_EQ(error(0, 6, 1), "");
  EXPECT_NE(error(0, 3, 0).find("stride of axis 0 is 0"), std::string::npos);
  EXPECT_NE(error(4, 2, 1).find("wrong side"), std::string::npos);
  EXPECT_NE(error(2, 4, -1).find("wrong side"), std::string::npos);
  EXPECT_NE(error(7, 9, 1).find("beyond the tensor"), std::string::npos);
  EXPECT_NE(error(9, 7, -1).find("beyond the tensor"), std::string::npos);
  EXPECT_NE(InferenceError(OpOf("strided_slice", {"Input"},
                                {{"axes", Ints{0, -1}},
                                 {"starts", Ints{0, 0}},
                                 {"ends", Ints{1, 1}},
                                 {"strides", Ints{1, 1}}}))
                .find("twice"),
            std::string::npos);
}

TEST_F(TensorOps, StridedSliceKeepsTheLoDLevelOfItsRows) {
  Declare("Input", {-1, 4}, DType::kFloat32, 2);
  const auto cut = [](int32_t axis) {
    return OpOf(
        "strided_slice", {"Input"},
        {{"axes", Ints{axis}}, {"starts", Ints{0}}, {"ends", Ints{1}}, {"strides", Ints{1}}});
  };
  EXPECT_EQ(LodLevel(cut(-1)), 2);
  EXPECT_EQ(LodLevel(cut(0)), 0);
}

TEST_F(TensorOps, RepetitionsNameWhatDoesNotFit) {
  Declare("X", {4, 6});
  ExpectInferenceError(OpOf("expand", {"X"}, {{"expand_times", Ints{2}}}),
                       "expected one number per dim");
  ExpectInferenceError(OpOf("expand", {"X"}, {{"expand_times", Ints{2, 0}}}),
                       "expected positive numbers");
  ExpectInferenceError(OpOf("tile", {"X"}, {{"repeat_times", Ints{-1, 2}}}),
                       "expected positive numbers");
  ExpectInferenceError(OpOf("expand_v2", {"X"}, {{"shape", Ints{8, 6}}}), "at dim 0");
  ExpectInferenceError(OpOf("expand_v2", {"X"}, {{"shape", Ints{-1, 4, 6}}}),
                       "a dim that X doesn't have");
  ExpectInferenceError(OpOf("expand_v2", {"X"}, {{"shape", Ints{6}}}), "fewer dims");
}

TEST_F(TensorOps, RepetitionsKeepWhatIsKnownOfRows) {
  Declare("X", {-1, 1}, DType::kFloat32, 2);
  const auto tile = [](Ints times) { return OpOf("tile", {"X"}, {{"repeat_times", times}}); };
  const auto expand = [](Ints shape) { return OpOf("expand_v2", {"X"}, {{"shape", shape}}); };
  EXPECT_EQ(Infer(expand({4, 3})), (Dims{4, 3}));
  EXPECT_EQ(Infer(expand({-1, 3})), (Dims{-1, 3}));
  EXPECT_EQ(Infer(tile({2, 3})), (Dims{-1, 3}));
  EXPECT_EQ(LodLevel(expand({-1, 3})), 2);
  EXPECT_EQ(LodLevel(expand({2, -1, 3})), 0);
  EXPECT_EQ(LodLevel(tile({1, 2})), 2);
  EXPECT_EQ(LodLevel(tile({2, 1})), 0);
  EXPECT_EQ(LodLevel(tile({1, 1, 1})), 0);
}

TEST_F(TensorOps, ExpandAsRefusesATargetThatXDoesNotBroadcastTo) {
  Declare("X", {2, 3});
  Declare("Y", {2, 4});
  Declare("Z", {3});
  ExpectInferenceError(OpOf("expand_as_v2", {"X", "Y"}), "doesn't broadcast to [2, 4] at dim 1");
  ExpectInferenceError(OpOf("expand_as_v2", {"X"}, {{"target_shape", Ints{-1, 3}}}),
                       "target_shape = [-1, 3] without Y");
  ExpectInferenceError(
      Op("expand_as_v2").SetInput("X", {"X"}).SetInput("Y", {"Z"}).SetOutput("Out", {"Out"}),
      "the target [3] has fewer dims than X");
}

TEST_F(TensorOps, FlipAndRollNameAxesThatDoNotFit) {
  Declare("X", {4, 6});
  ExpectInferenceError(OpOf("flip", {"X"}, {{"axis", Ints{1, 1}}}), "names an axis twice");
  ExpectInferenceError(OpOf("roll", {"X"}, {{"shifts", std::vector<int64_t>{1, 2}}}),
                       "2 shifts for 0 axes");
}

TEST_F(TensorOps, PixelShuffleTakesImagesWithinBounds) {
  Declare("matrix", {4, 6});
  Op op = OpOf("pixel_shuffle", {}, {{"upscale_factor", 2}});
  ExpectInferenceError(op.SetInput("X", {"matrix"}), "expected 4 dims");
  Declare("huge", {1, 4, int64_t{1} << 62, 1});
  EXPECT_NE(InferenceError(op.SetInput("X", {"huge"})), "");
}

TEST_F(TensorOps, PadNamesBordersThatDoNotFit) {
  Declare("X", {4, 6}, DType::kFloat32, 2);
  ExpectInferenceError(OpOf("pad", {"X"}, {{"paddings", Ints{1, 0}}}),
                       "expected two numbers per dim");
  ExpectInferenceError(OpOf("pad", {"X"}, {{"paddings", Ints{1, 0, 0, -1}}}), "negative");
  EXPECT_EQ(LodLevel(OpOf("pad", {"X"}, {{"paddings", Ints{0, 0, 1, 1}}})), 2);
  EXPECT_EQ(LodLevel(OpOf("pad", {"X"}, {{"paddings", Ints{0, 1, 1, 1}}})), 0);
}

TEST_F(TensorOps, PadRefusesValuesThatTheDtypeCannotHold) {
  Declare("X", {4}, DType::kInt32);
  const auto error = [&](float value) {
    return InferenceError(OpOf("pad", {"X"}, {{"paddings", Ints{1, 0}}, {"pad_value", value}}));
  };
  for (const float bad : {NAN, INFINITY, 0x1p31f}) EXPECT_NE(error(bad), "") << bad;
  EXPECT_EQ(error(-9.0f), "");
}

TEST_F(TensorOps, Pad2dRefusesBordersThatItCannotFill) {
  Declare("X", {1, 1, 3, 0});
  const auto error = [&](const std::string& mode, const Ints& paddings) {
    return InferenceError(OpOf("pad2d", {"X"}, {{"mode", mode}, {"paddings", paddings}}));
  };
  EXPECT_EQ(error("reflect", {2, 2, 0, 0}), "");
  EXPECT_NE(error("reflect", {3, 0, 0, 0}).find("too wide"), std::string::npos);
  EXPECT_EQ(error("edge", {9, 9, 0, 0}), "");
  EXPECT_NE(error("edge", {0, 0, 1, 0}).find("no pixel"), std::string::npos);
  EXPECT_EQ(error("constant", {0, 0, 1, 0}), "");
  EXPECT_NE(error("constant", {0, 0, -1, 0}).find("none negative"), std::string::npos);
  EXPECT_NE(error("mirror", {0, 0, 0, 0}).find("mode = \"mirror\""), std::string::npos);
}

TEST_F(TensorOps, Pad3dRefusesBordersThatItCannotFill) {
  Declare("X", {1, 1, 2, 3, 0});
  const auto error = [&](const std::string& mode, const Ints& paddings) {
    return InferenceError(OpOf("pad3d", {"X"}, {{"mode", mode}, {"paddings", paddings}}));
  };
  EXPECT_EQ(error("reflect", {0, 0, 2, 2, 1, 1}), "");
  EXPECT_NE(error("reflect", {0, 0, 0, 0, 2, 0}).find("too wide"), std::string::npos);
  EXPECT_EQ(error("circular", {0, 0, 9, 9, 9, 9}), "");
  EXPECT_NE(error("circular", {1, 0, 0, 0, 0, 0}).find("no pixel"), std::string::npos);
  EXPECT_NE(error("edge", {0, 0, 0, 0, 0, 0}).find("mode = \"edge\""), std::string::npos);
  EXPECT_NE(error("constant", {0, 0, 1, 1}).find("[left, right, top, bottom, front, back]"),
            std::string::npos);
}

}  // namespace
}  // namespace skiff
