// Ops that make values, or show them: errors, and what they write.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/tensor/kernels/tensor_text.h"
#include "tests/harness/foreign_locale.h"
#include "tests/operators/tensor/tensor_ops_fixture.h"

namespace skiff {
namespace {

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

}  // namespace
}  // namespace skiff
