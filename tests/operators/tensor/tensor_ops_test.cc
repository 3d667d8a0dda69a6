// Errors, gradients of ops that are another op, and shapes with unknown dims, which the cases can't
// express.
#include "operators/tensor/tensor_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/registry.h"
#include "operators/tensor/kernels/tensor_text.h"
#include "tests/harness/foreign_locale.h"

namespace skiff {
namespace {

class TensorOps : public ::testing::Test {
 protected:
  TensorOps() { RegisterTensorOps(registry_); }

  void Declare(const std::string& name, std::vector<int64_t> dims, DType dtype = DType::kFloat32,
               int32_t lod_level = 0) {
    program_.root()->CreateVar(
        {.name = name, .dtype = dtype, .dims = std::move(dims), .lod_level = lod_level});
  }
  // The dims of `output` after inference.
  std::vector<int64_t> Infer(Op op, const std::string& output = "out") {
    InferOp(registry_, program_.root(), &op);
    return program_.root()->GetVar(output)->dims;
  }
  // The message of the Error that inference throws; empty if it throws none.
  std::string InferenceError(Op op) {
    try {
      InferOp(registry_, program_.root(), &op);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void ExpectInferenceError(const Op& op, const std::string& part) {
    const std::string error = InferenceError(op);
    EXPECT_NE(error.find(part), std::string::npos)
        << op.type << ": \"" << error << "\" should contain \"" << part << "\"";
  }
  // The LoD level of the op's output "out" after inference.
  int32_t LodLevel(const Op& op) {
    Infer(op);
    return program_.root()->GetVar("out")->lod_level;
  }
  static Op Unary(const std::string& type, AttributeMap attrs) {
    Op op(type);
    op.attrs = std::move(attrs);
    op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
    return op;
  }

  OpRegistry registry_;
  Program program_;
};

using Dims = std::vector<int64_t>;
using Ints = std::vector<int32_t>;

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

TEST_F(TensorOps, SliceRefusesToDropAnAxisThatIsNotOne) {
  Declare("x", {4, 6});
  Op op("slice");
  op.SetInput("Input", {"x"}).SetOutput("Out", {"out"});
  op.attrs = {
      {"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{2}}, {"decrease_axis", Ints{0}}};
  EXPECT_NE(InferenceError(op).find("decrease_axis"), std::string::npos);
}

TEST_F(TensorOps, FillConstantRefusesValuesThatTheDtypeCannotHold) {
  Op op("fill_constant");
  op.SetOutput("Out", {"out"});
  op.attrs = {{"shape", std::vector<int64_t>{2}}, {"dtype", static_cast<int32_t>(DType::kUint8)}};
  EXPECT_NE(InferenceError(Op(op).SetAttr("value", 256.0f)), "");
  EXPECT_NE(InferenceError(Op(op).SetAttr("str_value", std::string("nan"))), "");
  EXPECT_NE(InferenceError(Op(op).SetAttr("str_value", std::string("1x"))), "");
  EXPECT_EQ(InferenceError(Op(op).SetAttr("value", 255.0f)), "");
}

TEST_F(TensorOps, NumbersInTextsAreTheSameInForeignLocales) {
  Op op("fill_constant");
  op.SetOutput("Out", {"out"}).SetAttr("str_value", std::string("0.5"));
  op.SetAttr("shape", std::vector<int64_t>{2});
  for (const auto kind : {ForeignLocale::kCpp, ForeignLocale::kC}) {
    const ForeignLocale locale(kind);
    if (!locale.is_set()) GTEST_SKIP() << ForeignLocale::why_not();
    EXPECT_EQ(InferenceError(op), "");
    const Tensor numbers = Tensor::FromValues<double>({3}, {0.5, 1234567, NAN});
    EXPECT_EQ(ElementsAsText(numbers, -1), "[0.5 1.23457e+06 nan]");
  }
}

TEST_F(TensorOps, FillConstantTakesTheLowestIntegers) {
  Op op("fill_constant");
  op.SetOutput("Out", {"out"});
  op.attrs = {{"shape", std::vector<int64_t>{2}}, {"dtype", static_cast<int32_t>(DType::kInt64)}};
  EXPECT_EQ(InferenceError(Op(op).SetAttr("value", -0x1p63f)), "");
  EXPECT_NE(InferenceError(Op(op).SetAttr("value", 0x1p63f)), "");
  EXPECT_NE(InferenceError(Op(op).SetAttr("value", -0x1.000002p63f)), "");
}

TEST_F(TensorOps, AssignNeedsAValue) {
  Op op("assign");
  op.SetOutput("Out", {"out"});
  EXPECT_NE(InferenceError(op).find("input slot \"X\" is missing"), std::string::npos);
}

// A holder with another number of bytes than the program declares.
TEST_F(TensorOps, FeedRefusesATensorOfAnotherSize) {
  Op op("feed");
  op.SetInput("X", {"feed"}).SetOutput("Out", {"x"}).SetAttr("col", 0);
  PrepareContext context(op, registry_.Get(op.type), {TensorMeta{}}, {TensorMeta{.shape = {4}}});
  const auto kernel = registry_.SelectKernel(context).prepare(context);
  for (const int64_t size : {4, 5}) {
    Tensor holder({size}, DType::kFloat32);
    std::fill_n(holder.data<float>(), size, 1.0f);
    Tensor out({4}, DType::kFloat32);
    const DeviceContext cpu;
    KernelContext run;
    run.device_context = &cpu;
    run.inputs = {&holder};
    run.outputs = {&out};
    if (size == 4) {
      EXPECT_NO_THROW(kernel->Run(run));
    } else {
      EXPECT_THROW(kernel->Run(run), Error);
    }
  }
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

Op LookupOp(const std::string& type) {
  Op op(type);
  op.SetInput("Ids", {"ids"}).SetInput("W", {"w"});
  if (!type.ends_with("_grad")) return op.SetOutput("Out", {"out"});
  return op.SetInput("Out@GRAD", {"gradient"}).SetOutput("W@GRAD", {"dw"});
}

TEST_F(TensorOps, LookupTablesRefuseATableOnAServer) {
  const auto expect_refusal = [&](Op op, const char* attribute, const Attribute& value) {
    try {
      CheckOp(registry_.Get(op.type), op.SetAttr(attribute, value));
      ADD_FAILURE() << op.type << " takes " << attribute;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
      EXPECT_NE(std::string(error.what()).find(attribute), std::string::npos) << error.what();
    }
  };
  for (const char* type :
       {"lookup_table", "lookup_table_grad", "lookup_table_v2", "lookup_table_v2_grad"}) {
    EXPECT_NO_THROW(CheckOp(registry_.Get(type), LookupOp(type).SetAttr("is_distributed", false)));
    expect_refusal(LookupOp(type), "is_distributed", true);
  }
  for (const char* type : {"lookup_table", "lookup_table_grad"}) {
    const std::vector<std::string> servers = {"10.0.0.1:6174"};
    EXPECT_NO_THROW(
        CheckOp(registry_.Get(type), LookupOp(type).SetAttr("epmap", std::vector<std::string>{})));
    expect_refusal(LookupOp(type), "epmap", servers);
  }
}

// PaddlePaddle sets remote_prefetch in every program with a sparse table.
TEST_F(TensorOps, LookupTablesTakeTheHintOfSparseTables) {
  for (const char* type :
       {"lookup_table", "lookup_table_grad", "lookup_table_v2", "lookup_table_v2_grad"}) {
    Op op = LookupOp(type);
    op.SetAttr("is_sparse", true).SetAttr("remote_prefetch", true);
    EXPECT_NO_THROW(CheckOp(registry_.Get(type), op)) << type;
  }
}

TEST_F(TensorOps, CoalesceTensorTakesCopiesOnly) {
  Declare("x", {2, 3});
  Declare("y", {-1});
  Op op("coalesce_tensor");
  op.SetInput("Input", {"x", "y"})
      .SetOutput("Output", {"x", "y"})
      .SetOutput("FusedOutput", {"out"});
  op.SetAttr("dtype", static_cast<int32_t>(DType::kFloat32));
  ExpectInferenceError(Op(op).SetAttr("copy_data", false),
                       "copy_data = false, expected true: outputs share no memory");
  op.SetAttr("copy_data", true).SetAttr("use_align", false);
  EXPECT_EQ(Infer(op), (std::vector<int64_t>{-1}));
  ExpectInferenceError(Op(op).SetAttr("set_constant", true), "set_constant = true");
  ExpectInferenceError(Op(op).SetOutput("Output", {"x"}), "2 variables in Input and 1 in Output");
  ExpectInferenceError(Op(op).SetAttr("dtype", static_cast<int32_t>(DType::kFloat64)),
                       "Input[0] is float32, expected float64");
  ExpectInferenceError(Op(op).SetAttr("use_align", true).SetAttr("align_size", 6),
                       "align_size = 6, expected a multiple of the 4 bytes");
}

// Runs lookup_table_v2 on three ids over a table of four rows.
void LookUp(const OpRegistry& registry, std::vector<int64_t> ids) {
  Op op("lookup_table_v2");
  op.SetInput("Ids", {"ids"}).SetInput("W", {"w"}).SetOutput("Out", {"out"});
  const TensorMeta ids_meta{.shape = {3}, .dtype = DType::kInt64};
  const TensorMeta table_meta{.shape = {4, 2}};
  PrepareContext context(op, registry.Get(op.type), {ids_meta, table_meta},
                         {TensorMeta{.shape = {3, 2}}});
  const auto kernel = registry.SelectKernel(context).prepare(context);
  Tensor id_tensor = Tensor::FromValues<int64_t>({3}, ids);
  Tensor table = Tensor::FromValues<float>({4, 2}, std::vector<float>(8, 1.0f));
  Tensor out({3, 2}, DType::kFloat32);
  KernelContext run;
  run.inputs = {&id_tensor, &table};
  run.outputs = {&out};
  kernel->Run(run);
}

TEST_F(TensorOps, LookupTableNamesAnIdOutsideTheTable) {
  EXPECT_NO_THROW(LookUp(registry_, {0, 3, 1}));
  for (const int64_t bad : {int64_t{4}, int64_t{-1}, int64_t{1} << 40}) {
    try {
      LookUp(registry_, {0, bad, 1});
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      EXPECT_NE(std::string(error.what()).find("Ids[1]"), std::string::npos) << error.what();
    }
  }
}

// Runs the kernel of `op`; the tensors are in the order of its definition's slots.
void Run(const OpRegistry& registry, const Op& op, std::vector<Tensor*> inputs,
         std::vector<Tensor*> outputs, int times = 1) {
  const auto metas = [](const std::vector<Tensor*>& tensors) {
    std::vector<TensorMeta> result;
    for (const Tensor* tensor : tensors) {
      result.push_back({.shape = tensor->shape(), .dtype = tensor->dtype()});
    }
    return result;
  };
  PrepareContext context(op, registry.Get(op.type), metas(inputs), metas(outputs));
  const auto kernel = registry.SelectKernel(context).prepare(context);
  std::vector<std::vector<int64_t>> workspaces;
  KernelContext run;
  for (const int64_t bytes : context.workspace_bytes()) {
    workspaces.emplace_back(static_cast<size_t>(bytes / 8 + 1));
  }
  for (std::vector<int64_t>& workspace : workspaces) run.workspaces.push_back(workspace.data());
  run.inputs = std::move(inputs);
  run.outputs = std::move(outputs);
  for (int i = 0; i < times; ++i) kernel->Run(run);
}

// The message of the Error that running it throws; empty if it throws none.
std::string RunError(const OpRegistry& registry, const Op& op, std::vector<Tensor*> inputs,
                     std::vector<Tensor*> outputs) {
  try {
    Run(registry, op, std::move(inputs), std::move(outputs));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// An op whose inputs are variables named like their slots.
Op OpOf(const std::string& type, const std::vector<std::string>& inputs, AttributeMap attrs = {},
        const std::string& output = "Out") {
  Op op(type);
  for (const std::string& slot : inputs) op.SetInput(slot, {slot});
  op.attrs = std::move(attrs);
  if (!output.empty()) op.SetOutput(output, {"out"});
  return op;
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

TEST_F(TensorOps, OpsWithIndicesNameOneOutsideTheTensor) {
  Tensor x = Tensor::FromValues<float>({3, 2}, {0, 1, 2, 3, 4, 5});
  Tensor out({4, 2}, DType::kFloat32);
  const Op gather = OpOf("gather", {"X", "Index"});
  const Op select = OpOf("index_select", {"X", "Index"});
  const Op nd = OpOf("gather_nd", {"X", "Index"});
  for (const int64_t bad : {int64_t{3}, int64_t{-1}, int64_t{1} << 40}) {
    Tensor index = Tensor::FromValues<int64_t>({4}, {0, 2, bad, 1});
    const std::string expected = StrCat("Index[2] = ", bad, " is outside [0, 3)");
    EXPECT_EQ(RunError(registry_, gather, {&x, &index}, {&out}), "gather: " + expected);
    EXPECT_EQ(RunError(registry_, select, {&x, &index}, {&out}), "index_select: " + expected);
    Tensor tuples = Tensor::FromValues<int64_t>({4, 1}, {0, 2, bad, 1});
    EXPECT_EQ(RunError(registry_, nd, {&x, &tuples}, {&out}),
              StrCat("gather_nd: index 0 of tuple 2 in Index is ", bad, ", outside [0, 3)"));
  }
  // The index of the last dim, not of the flat tensor.
  Tensor pairs = Tensor::FromValues<int64_t>({1, 2}, {0, 2});
  Tensor one({1}, DType::kFloat32);
  EXPECT_EQ(RunError(registry_, nd, {&x, &pairs}, {&one}),
            "gather_nd: index 1 of tuple 0 in Index is 2, outside [0, 2)");
}

TEST_F(TensorOps, AScatterThatFailsLeavesWhatItWorksOn) {
  const std::vector<float> before = {0, 1, 2, 3, 4, 5};
  Tensor x = Tensor::FromValues<float>({3, 2}, before);
  Tensor updates = Tensor::FromValues<float>({2, 2}, {9, 9, 9, 9});
  Tensor ids = Tensor::FromValues<int32_t>({2}, {1, 3});
  Tensor tuples = Tensor::FromValues<int32_t>({2, 1}, {1, 3});
  const Op scatter = OpOf("scatter", {"X", "Ids", "Updates"});
  EXPECT_EQ(RunError(registry_, scatter, {&x, &ids, &updates}, {&x}),
            "scatter: Ids[1] = 3 is outside [0, 3)");
  EXPECT_EQ(x.ToVector<float>(), before);
  const Op add = OpOf("scatter_nd_add", {"X", "Index", "Updates"});
  EXPECT_NE(RunError(registry_, add, {&x, &tuples, &updates}, {&x}), "");
  EXPECT_EQ(x.ToVector<float>(), before);
}

TEST_F(TensorOps, OpsWithIndicesNameShapesThatDoNotFit) {
  Declare("X", {4, 6});
  Declare("V", {4});
  Declare("Index", {3, 2}, DType::kInt64);
  Declare("Ids", {3}, DType::kInt64);
  Declare("Updates", {3, 5});
  ExpectInferenceError(OpOf("gather", {"X", "Index"}),
                       "Index has shape [3, 2], expected [], [m] or [m, 1]");
  Op gather = OpOf("gather", {"X"}, {{"axis", -1}});
  ExpectInferenceError(gather.SetInput("Index", {"Ids"}), "axis = -1 is outside [0, 2)");
  Op nd = OpOf("gather_nd", {"Index"});
  ExpectInferenceError(nd.SetInput("X", {"V"}), "Index has shape [3, 2], whose last dim");
  ExpectInferenceError(OpOf("scatter", {"X", "Ids", "Updates"}),
                       "Updates is float32 [3, 5], expected float32 [3, 6]");
  ExpectInferenceError(OpOf("scatter_nd_add", {"X", "Index", "Updates"}),
                       "Updates is float32 [3, 5]");
}

TEST_F(TensorOps, GatherKeepsWhatIsKnownOfRows) {
  Declare("X", {-1, 4}, DType::kFloat32, 2);
  Declare("Index", {-1}, DType::kInt64);
  EXPECT_EQ(Infer(OpOf("gather", {"X", "Index"}, {{"axis", 1}})), (Dims{-1, -1}));
  EXPECT_EQ(LodLevel(OpOf("gather", {"X", "Index"}, {{"axis", 1}})), 2);
  EXPECT_EQ(LodLevel(OpOf("gather", {"X", "Index"})), 0);
  EXPECT_EQ(LodLevel(OpOf("index_select", {"X", "Index"}, {{"dim", -1}})), 2);
}

TEST_F(TensorOps, OneHotNamesAnIndexOutsideTheDepth) {
  Tensor x = Tensor::FromValues<int64_t>({2}, {1, 3});
  Tensor out({2, 3}, DType::kFloat32);
  const Op op = OpOf("one_hot_v2", {"X"}, {{"depth", 3}});
  EXPECT_EQ(RunError(registry_, op, {&x}, {&out}), "one_hot_v2: X[1] = 3 is outside [0, 3)");
}

TEST_F(TensorOps, OneHotTakesIndices) {
  Declare("X", {4, 6});
  ExpectInferenceError(OpOf("one_hot_v2", {"X"}, {{"depth", 3}}),
                       "X is float32, expected int32 or int64");
  Declare("ids", {-1}, DType::kInt64, 2);
  Op op = OpOf("one_hot_v2", {}, {{"depth", 3}});
  EXPECT_EQ(LodLevel(op.SetInput("X", {"ids"})), 2);
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

TEST_F(TensorOps, SetValueRefusesValuesThatDoNotFit) {
  using Longs = std::vector<int64_t>;
  Declare("X", {4, 3}, DType::kInt32);
  Declare("V", {2, 2}, DType::kInt32);
  Declare("F", {3});
  const auto error = [&](const char* value, const Longs& dropped,
                         const std::vector<double>& values) {
    Op op = OpOf("set_value", {},
                 {{"axes", Longs{0}},
                  {"starts", Longs{1}},
                  {"ends", Longs{3}},
                  {"steps", Longs{1}},
                  {"decrease_axes", dropped},
                  {"values", values},
                  {"shape", Longs{1}}});
    op.SetInput("Input", {"X"});
    if (value != nullptr) op.SetInput("ValueTensor", {value});
    return InferenceError(op);
  };
  EXPECT_EQ(error(nullptr, {}, {7}), "");
  EXPECT_NE(error(nullptr, {}, {}).find("0 values, expected ValueTensor, or 1"), std::string::npos);
  EXPECT_NE(error(nullptr, {}, {1e12}), "");
  EXPECT_NE(error("V", {}, {})
                .find("a value of shape [2, 2] doesn't broadcast to the [2, 3] "
                      "elements that are set: dim 1 should be 3 or 1"),
            std::string::npos);
  EXPECT_NE(error("F", {}, {}).find("ValueTensor is float32, expected int32"), std::string::npos);
  EXPECT_NE(error(nullptr, {0}, {7}).find("decrease_axes names axis 0, along which 2 elements"),
            std::string::npos);
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

TEST_F(TensorOps, TrilTriuTakesMatrices) {
  Declare("x", {4});
  EXPECT_NE(InferenceError(Unary("tril_triu", {})).find("expected matrices"), std::string::npos);
}

TEST_F(TensorOps, MatricesNameWhatDoesNotFit) {
  Declare("X", {4, 6});
  ExpectInferenceError(OpOf("meshgrid", {"X"}), "expected two or more");
  ExpectInferenceError(OpOf("eye", {}, {{"num_rows", int64_t{-1}}}), "num_rows = -1");
  ExpectInferenceError(OpOf("diag_v2", {"X"}, {{"offset", 7}}),
                       "offset = 7 is outside X of shape [4, 6]");
  Declare("counts", {4}, DType::kInt32);
  Op diag = OpOf("diag_v2", {}, {{"padding_value", NAN}});
  EXPECT_NE(InferenceError(diag.SetInput("X", {"counts"})), "");
}

TEST_F(TensorOps, SequencesRefuseStepsAndCountsThatLeadNowhere) {
  const auto range = [&](float start, float end, float step) {
    Tensor a = Tensor::FromValues<float>({1}, {start});
    Tensor b = Tensor::FromValues<float>({1}, {end});
    Tensor c = Tensor::FromValues<float>({1}, {step});
    Tensor out;
    return RunError(registry_, OpOf("range", {"Start", "End", "Step"}), {&a, &b, &c}, {&out});
  };
  EXPECT_EQ(range(0, 5, 1), "");
  EXPECT_EQ(range(0, 5, 0), "range: Step is 0");
  EXPECT_NE(range(0, 5, -1).find("leads away"), std::string::npos);
  EXPECT_NE(range(5, 0, 1).find("leads away"), std::string::npos);
  const Op linspace = OpOf("linspace", {"Start", "Stop", "Num"},
                           {{"dtype", static_cast<int32_t>(DType::kFloat32)}});
  Tensor ends = Tensor::FromValues<float>({1}, {1});
  Tensor none = Tensor::FromValues<int32_t>({1}, {0});
  Tensor out;
  EXPECT_EQ(RunError(registry_, linspace, {&ends, &ends, &none}, {&out}),
            "linspace: Num = 0, expected a positive number");
}

TEST_F(TensorOps, UniqueNamesWhatHasNoOrder) {
  Tensor x = Tensor::FromValues<float>({3}, {1, NAN, 2});
  Tensor out;
  Tensor index({3}, DType::kInt64);
  Op op = OpOf("unique", {"X"});
  op.SetOutput("Index", {"index"});
  EXPECT_EQ(RunError(registry_, op, {&x}, {&out, &index}),
            "unique: element 1 of X is NaN, expected numbers");
}

TEST_F(TensorOps, UniqueTakesVectorsUnlessItSorts) {
  Declare("X", {-1, 3});
  Op op = OpOf("unique", {"X"});
  op.SetOutput("Index", {"index"});
  EXPECT_NE(InferenceError(op).find("expected a vector"), std::string::npos);
  EXPECT_EQ(Infer(Op(op).SetAttr("is_sorted", true), "index"), (Dims{-1}));
  EXPECT_EQ(Infer(Op(op).SetAttr("is_sorted", true).SetAttr("axis", Ints{1}), "out"),
            (Dims{-1, -1}));
  EXPECT_EQ(Infer(Op(op).SetAttr("is_sorted", true).SetAttr("axis", Ints{1}), "index"), (Dims{3}));
  EXPECT_NE(InferenceError(Op(op).SetAttr("is_sorted", true).SetAttr("axis", Ints{0, 1})), "");
}

TEST_F(TensorOps, LengthsThatTheValuesTellAreDataDependent) {
  for (const char* type : {"range", "linspace", "unique"}) {
    EXPECT_TRUE(registry_.Get(type).data_dependent_shape) << type;
  }
}

TEST_F(TensorOps, AssertShowsItsDataWhereTheConditionIsFalse) {
  Tensor no = Tensor::FromValues<bool>({1}, {false});
  Tensor numbers = Tensor::FromValues<float>({2, 2}, {1, 2.5f, 3, 4});
  Tensor counts = Tensor::FromValues<int64_t>({1}, {7});
  Op op = OpOf("assert", {}, {{"summarize", int64_t{2}}}, "");
  op.SetInput("Cond", {"is_small"}).SetInput("Data", {"numbers", "counts"});
  EXPECT_EQ(RunError(registry_, op, {&no, &numbers, &counts}, {}),
            "assert: \"is_small\" is false\n"
            "  numbers: float32 [2, 2] [1 2.5]\n"
            "  counts: int64 [1] [7]");
  Tensor yes = Tensor::FromValues<bool>({1}, {true});
  EXPECT_EQ(RunError(registry_, op, {&yes, &numbers, &counts}, {}), "");
}

// What printing `in` writes.
std::string Printed(const OpRegistry& registry, AttributeMap attrs, Tensor in, int times = 1) {
  attrs.insert({{"first_n", -1}, {"message", std::string()}, {"summarize", 3}});
  Tensor out(in.shape(), in.dtype());
  Op op = OpOf("print", {}, std::move(attrs));
  op.SetInput("In", {"loss"});
  testing::internal::CaptureStdout();
  Run(registry, op, {&in}, {&out}, times);
  return testing::internal::GetCapturedStdout();
}

TEST_F(TensorOps, PrintWritesFluidsText) {
  Tensor in = Tensor::FromValues<float>({2, 2}, {1.5f, -2, 1e-9f, 4});
  in.set_lod({{0, 1, 2}});
  EXPECT_EQ(Printed(registry_, {{"message", std::string("after step")}}, in),
            "Variable: loss\n"
            "  - message: after step\n"
            "  - lod: {{0, 1, 2}}\n"
            "  - place: Place(cpu)\n"
            "  - shape: [2, 2]\n"
            "  - layout: NCHW\n"
            "  - dtype: float32\n"
            "  - data: [1.5 -2 1e-09]\n");
  const AttributeMap bare = {{"summarize", -1},
                             {"print_tensor_name", false},
                             {"print_tensor_type", false},
                             {"print_tensor_shape", false},
                             {"print_tensor_layout", false},
                             {"print_tensor_lod", false}};
  EXPECT_EQ(Printed(registry_, bare, Tensor::FromValues<int64_t>({4}, {1, 2, 3, 4})),
            "  - place: Place(cpu)\n  - data: [1 2 3 4]\n");
}

// As PaddlePaddle 2.6.2 does: nothing between two levels.
TEST_F(TensorOps, PrintWritesEachLevelOfALoD) {
  Tensor in = Tensor::FromValues<float>({5, 1}, {0, 1, 2, 3, 4});
  in.set_lod({{0, 2, 3}, {0, 1, 2, 5}});
  const AttributeMap lod_alone = {{"print_tensor_name", false},
                                  {"print_tensor_type", false},
                                  {"print_tensor_shape", false},
                                  {"print_tensor_layout", false}};
  EXPECT_EQ(Printed(registry_, lod_alone, in),
            "  - lod: {{0, 2, 3}{0, 1, 2, 5}}\n  - place: Place(cpu)\n  - data: [0 1 2]\n");
}

TEST_F(TensorOps, PrintWritesInItsPhaseAndNoMoreThanFirstN) {
  const Tensor in = Tensor::FromValues<int64_t>({1}, {1});
  const auto lines = [&](AttributeMap attrs, int times) {
    const std::string text = Printed(registry_, std::move(attrs), in, times);
    return std::count(text.begin(), text.end(), 'V');
  };
  const std::string forward = "FORWARD";
  const std::string backward = "BACKWARD";
  EXPECT_EQ(lines({{"first_n", 2}}, 5), 2);
  EXPECT_EQ(lines({}, 5), 5);
  EXPECT_EQ(lines({{"print_phase", forward}}, 1), 1);
  EXPECT_EQ(lines({{"print_phase", backward}}, 1), 0);
  EXPECT_EQ(lines({{"print_phase", backward}, {"is_forward", false}}, 1), 1);
  EXPECT_EQ(lines({{"print_phase", forward}, {"is_forward", false}}, 1), 0);
}

TEST_F(TensorOps, PrintAndAssertRunThoughNobodyReadsThem) {
  EXPECT_TRUE(registry_.Get("print").has_side_effect);
  EXPECT_TRUE(registry_.Get("assert").has_side_effect);
}

TEST_F(TensorOps, PrintHasNoDefaultForHowOften) {
  Declare("X", {4, 6});
  Op print = OpOf("print", {});
  ExpectInferenceError(print.SetInput("In", {"X"}), "\"first_n\" is not set and has no default");
}

TEST_F(TensorOps, UnpoolNamesWhatDoesNotFit) {
  const AttributeMap halves = {{"ksize", std::vector<int32_t>{2, 2}},
                               {"strides", std::vector<int32_t>{2, 2}}};
  const Op op = OpOf("unpool", {"X", "Indices"}, halves);
  Tensor x = Tensor::FromValues<float>({1, 2, 1, 2}, {1, 2, 3, 4});
  Tensor out({1, 2, 2, 4}, DType::kFloat32);
  Tensor good = Tensor::FromValues<int64_t>({1, 2, 1, 2}, {0, 7, 2, 1});
  EXPECT_EQ(RunError(registry_, op, {&x, &good}, {&out}), "");
  EXPECT_EQ(out.ToVector<float>(),
            (std::vector<float>{1, 0, 0, 0, 0, 0, 0, 2, 0, 4, 3, 0, 0, 0, 0, 0}));
  Tensor bad = Tensor::FromValues<int64_t>({1, 2, 1, 2}, {0, 7, 8, 1});
  EXPECT_NE(
      RunError(registry_, op, {&x, &bad}, {&out}).find("unpool: Indices[2] = 8 is outside [0, 8)"),
      std::string::npos);
  const auto refused = [&](AttributeMap attrs, const TensorMeta& indices) {
    const Op wrong = OpOf("unpool", {"X", "Indices"}, std::move(attrs));
    OpContext context(wrong, registry_.Get("unpool"), {TensorMeta{.shape = {1, 2, 1, 2}}, indices},
                      {TensorMeta{}});
    try {
      InferOutputs(&context);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const TensorMeta indices{.shape = {1, 2, 1, 2}, .dtype = DType::kInt64};
  EXPECT_EQ(refused(halves, indices), "");
  using ::testing::HasSubstr;
  EXPECT_THAT(refused(halves, {.shape = {1, 2, 1, 3}, .dtype = DType::kInt64}),
              HasSubstr("Indices"));
  EXPECT_THAT(refused(halves, {.shape = {1, 2, 1, 2}}), HasSubstr("Indices"));
  const auto with = [&](const char* name, const std::vector<int32_t>& values) {
    AttributeMap attrs = halves;
    attrs[name] = values;
    return attrs;
  };
  EXPECT_THAT(refused(with("ksize", {2}), indices), HasSubstr("ksize = [2]"));
  EXPECT_THAT(refused(with("strides", {0, 2}), indices), HasSubstr("strides = [0, 2]"));
  EXPECT_THAT(refused(with("paddings", {1, 0}), indices), HasSubstr("an output height of 0"));
  EXPECT_THAT(refused(with("output_size", {4, 0}), indices), HasSubstr("output_size = [4, 0]"));
}

}  // namespace
}  // namespace skiff
