#include "tests/harness/kernel_coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "framework/base/error.h"
#include "framework/op/grad.h"

namespace skiff::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

OpDef CopyDef(const std::string& type) {
  OpDef def;
  def.type = type;
  def.doc = "Out = X.";
  def.inputs = {{.name = "X", .doc = "input"}, {.name = "Out@GRAD", .dispensable = true}};
  def.outputs = {{.name = "Out", .dispensable = true}, {.name = "X@GRAD", .dispensable = true}};
  def.infer = [](OpContext& context) {
    context.SetOutputLike("Out", "X");
    context.SetOutputLike("X@GRAD", "X");
  };
  def.no_gradient_reason = "none";
  def.layout_rule = LayoutRule::kSame;
  def.layout_slots = {"X", "Out"};
  return def;
}

KernelDef Candidate(const std::string& name, std::function<bool(const OpContext&)> accepts,
                    PlaceKind place = PlaceKind::kCpu) {
  return {.name = name,
          .place = place,
          .prepare =
              [](PrepareContext&) {
                return MakeKernel([](const KernelContext& kernel) {
                  for (int64_t i = 0; i < kernel.input(0).element_count(); ++i) {
                    kernel.output(0).data<float>()[i] = kernel.input(0).data<float>()[i];
                  }
                });
              },
          .accepts = std::move(accepts)};
}

OpCase CaseOf(const Shape& shape) {
  OpCase op_case;
  op_case.name = "copied";
  op_case.type = "copy";
  op_case.inputs = {{"X", {Uniform(shape, 1)}}};
  op_case.outputs = {{"Out", 1}};
  op_case.reference = [](const Arrays& inputs) { return Arrays{{"Out", inputs.at("X")}}; };
  op_case.dtypes = {DType::kFloat32};
  return op_case;
}

class KernelCoverageTest : public ::testing::Test {
 protected:
  KernelCoverageTest() {
    registry_.Add(CopyDef("copy"));
    registry_.AddKernel("copy", Candidate("plain", {}));
  }

  OpRegistry registry_;
};

TEST_F(KernelCoverageTest, NamesACandidateThatAcceptsNoCase) {
  registry_.AddKernel("copy", Candidate("long", [](const OpContext& context) {
                        return context.Input("X").shape[0] > 100;
                      }));
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({5})}), ElementsAre("copy/long/float32"));
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({101})}), IsEmpty());
  OpCase benchmark = CaseOf({101});
  benchmark.benchmark_only = true;
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({5}), benchmark}),
              ElementsAre("copy/long/float32"));
}

TEST_F(KernelCoverageTest, LeavesOutWhatNeedsAnotherProcessor) {
  KernelDef native = Candidate("native", [](const OpContext&) { return false; });
  native.needs = InstructionSet::kAvx512Bf16;
  registry_.AddKernel("copy", native);
  EXPECT_EQ(KernelsWithoutCase(registry_, {CaseOf({5})}).empty(), !UsesAvx512Bf16());
}

TEST_F(KernelCoverageTest, CountsCandidatesForBlockedLayouts) {
  registry_.AddKernel("copy", Candidate("blocked", [](const OpContext& context) {
                        return !context.Input("X").layout.is_plain();
                      }));
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({5})}), ElementsAre("copy/blocked/float32"));
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({2, 9, 3, 3})}), IsEmpty());
}

TEST_F(KernelCoverageTest, CountsKernelsOfCheckedGradients) {
  OpDef twice = CopyDef("twice");
  twice.no_gradient_reason = {};
  twice.grad = GradOp("twice_grad", {"X", "Out@GRAD"}, {"X@GRAD"});
  registry_.Add(std::move(twice));
  registry_.Add(CopyDef("twice_grad"));
  KernelDef kernel = Candidate("plain", {});
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    kernel.dtype = dtype;
    kernel.prepare = [](PrepareContext&) { return MakeKernel([](const KernelContext&) {}); };
    registry_.AddKernel("twice", kernel);
    registry_.AddKernel("twice_grad", kernel);
  }
  OpCase op_case = CaseOf({3});
  op_case.type = "twice";
  op_case.dtypes = {DType::kFloat32, DType::kFloat64};
  EXPECT_THAT(KernelsOfCase(registry_, op_case),
              ElementsAre("twice/plain/float32", "twice/plain/float64"));
  op_case.gradients = {"X"};
  EXPECT_THAT(KernelsOfCase(registry_, op_case),
              ElementsAre("twice/plain/float32", "twice/plain/float64", "twice_grad/plain/float32",
                          "twice_grad/plain/float64"));
}

TEST_F(KernelCoverageTest, AsksForEachFloatAndForAnyOtherDtype) {
  for (const DType dtype : {DType::kFloat64, DType::kInt8, DType::kBFloat16}) {
    KernelDef kernel = Candidate("plain", {});
    kernel.dtype = dtype;
    registry_.AddKernel("copy", kernel);
  }
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({3})}), ElementsAre("copy/plain/float64"));
  KernelDef lone = Candidate("lone", {});
  lone.dtype = DType::kInt8;
  registry_.AddKernel("copy", lone);
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({3})}),
              ElementsAre("copy/plain/float64", "copy/lone/int8"));
}

// The rows of a value that the shape rule fixes can't be fewer than those of the case.
TEST_F(KernelCoverageTest, NamesAKernelThatTakesFewerRowsThanNoCaseHas) {
  const auto prepare = [](PrepareContext&) { return MakeRowsKernel([](const KernelContext&) {}); };
  KernelDef takes_fewer = Candidate("rows", {});
  takes_fewer.prepare = prepare;
  registry_.AddKernel("copy", takes_fewer);
  OpDef fixed = CopyDef("fixed");
  fixed.infer = [](OpContext& context) {
    SKIFF_ENFORCE(context.Input("X").shape[0] == 3, kInvalidArgument, "expected 3 rows");
    context.SetOutputLike("Out", "X");
  };
  registry_.Add(std::move(fixed));
  registry_.AddKernel("fixed", takes_fewer);
  OpCase of_fixed = CaseOf({3});
  of_fixed.type = "fixed";
  const RowKernels kernels = FindRowKernels(registry_, {CaseOf({3}), of_fixed});
  EXPECT_THAT(kernels.all, ElementsAre("copy/rows/float32", "fixed/rows/float32"));
  EXPECT_THAT(kernels.checked, ElementsAre("copy/rows/float32"));
  EXPECT_THAT(RowKernelsWithoutCheck(kernels), ElementsAre("fixed/rows/float32"));
}

// Which cases a device's kernels accept is known without the device.
TEST_F(KernelCoverageTest, TellsPlacesApart) {
  const auto accepts = [](const OpContext& context) { return context.Input("X").shape[0] > 2; };
  registry_.AddKernel("copy", Candidate("cuda", accepts, PlaceKind::kCuda));
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({2})}), IsEmpty());
  EXPECT_THAT(KernelsWithoutCase(registry_, {CaseOf({2})}, Place::Cuda()),
              ElementsAre("copy/cuda/float32"));
  EXPECT_THAT(KernelsOfCase(registry_, CaseOf({3}), Place::Cuda()),
              ElementsAre("copy/cuda/float32"));
}

}  // namespace
}  // namespace skiff::harness
