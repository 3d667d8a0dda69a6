// prelu: Out = X where X > 0, else Alpha * X, with one Alpha for all elements, one per channel, or
// one per element of a sample. Source: Fluid's prelu, after He et al.: Delving Deep into Rectifiers
// (2015).
//
// X@GRAD = Out@GRAD where X > 0, else Out@GRAD * Alpha; Alpha@GRAD = the sum of Out@GRAD * X where
// X <= 0, over the elements that share an Alpha.
#include <memory>
#include <string>

#include "framework/op/grad.h"
#include "operators/elementwise/kernels/binary.h"
#include "operators/elementwise/kernels/prelu_alpha.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/prelu.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/elementwise/kernels/prelu_formula-inl.h"

BinaryFloatLoops PreluLoops() { return BinaryLoops<PreluFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(PreluLoops);

// The loops of a dtype, for the instruction set in use.
template <typename T>
struct Loops;

template <>
struct Loops<float> {
  BinaryKernelLoop<float> forward = HWY_DYNAMIC_DISPATCH(PreluLoops)().forward;
  BinaryGradLoops<float> grad = HWY_DYNAMIC_DISPATCH(PreluLoops)().grad;
  int64_t grain = kVectorGrain;
};

template <>
struct Loops<double> {
  BinaryKernelLoop<double> forward = ScalarBinaryLoop<HWY_NAMESPACE::PreluFormula, double>;
  BinaryGradLoops<double> grad = ScalarBinaryGradLoops<HWY_NAMESPACE::PreluFormula, double>();
  int64_t grain = kScalarGrain;
};

void CheckAlpha(const OpContext& context) {
  const std::string& type = context.op().type;
  const TensorMeta& x = context.Input("X");
  const TensorMeta& alpha = context.Input("Alpha");
  const std::string& mode = context.Attr<std::string>("mode");
  SKIFF_ENFORCE(alpha.dtype == x.dtype, kInvalidArgument, type, ": Alpha is ", alpha.dtype,
                ", expected X's ", x.dtype);
  SKIFF_ENFORCE(mode != "channel" || x.shape.rank() >= 2, kInvalidArgument, type, ": X has shape ",
                x.shape, ", expected at least 2 dims in mode channel");
  SKIFF_ENFORCE(mode != "element" || x.shape.rank() >= 1, kInvalidArgument, type,
                ": X is of rank 0, expected at least one dim in mode element");
  const Shape expected = AlphaShape(x.shape, AlphaAxesOf(context));
  // What is unknown while a program is checked is checked again when it is prepared.
  if (!alpha.shape.is_known() || !expected.is_known()) return;
  if (mode == "element") {
    SKIFF_ENFORCE(alpha.shape == expected, kInvalidArgument, type, ": Alpha has shape ",
                  alpha.shape, ", expected ", expected, " for X ", x.shape, " in mode element");
    return;
  }
  const int64_t count = expected.element_count();
  SKIFF_ENFORCE(alpha.shape.element_count() == count, kInvalidArgument, type, ": Alpha has shape ",
                alpha.shape, ", expected ", count == 1 ? "one element" : StrCat(count, " elements"),
                " for X ", x.shape, " in mode ", mode);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const AlphaAxes axes = AlphaAxesOf(context);
  const Loops<T> loops;
  const In<T> x(context, "X");
  const In<T> alpha(context, "Alpha");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    RunBinary(BroadcastOfAlpha(x.shape(run), axes), loops.forward, loops.grain, x(run), alpha(run),
              out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const AlphaAxes axes = AlphaAxesOf(context);
  const Broadcast broadcast = BroadcastOfAlpha(context.Input("X").shape, axes);
  const Loops<T> loops;
  const BinaryGradInputs inputs = {.x = context.InputIndex("X"),
                                   .y = context.InputIndex("Alpha"),
                                   .dout = context.InputIndex("Out@GRAD")};
  const OperandGradient<T> x(context, broadcast, BroadcastOperand::kX, inputs,
                             context.OutputIndex("X@GRAD"), loops.grad.x, loops.grain);
  const OperandGradient<T> alpha(context, broadcast, BroadcastOperand::kY, inputs,
                                 context.OutputIndex("Alpha@GRAD"), loops.grad.y, loops.grain);
  // X@GRAD comes last, since it may share the storage of Out@GRAD.
  return MakeRowsKernel([=, x_input = inputs.x](const KernelContext& run) {
    const Broadcast loops_of_run = BroadcastOfAlpha(run.input(x_input).shape(), axes);
    alpha.Run(run, loops_of_run);
    x.Run(run, loops_of_run);
  });
}

}  // namespace

void RegisterPrelu(OpRegistry& registry) {
  OpDef def;
  def.type = "prelu";
  def.doc = "Out = X where X > 0, else Alpha * X.";
  def.inputs = {
      {.name = "X", .doc = "The operand, of any shape."},
      {.name = "Alpha",
       .doc = "Slopes: one (mode all), one per channel (channel) or [1, ...] with X's other "
              "dims (element)."}};
  def.outputs = {{.name = "Out", .doc = "The result, of X's shape."}};
  def.attrs = {
      ChoiceAttr("data_format", "NCHW", {"NCHW", "NHWC"},
                 "Where the channels are: in dim 1 (NCHW) or in the last one (NHWC)."),
      ChoiceAttr("mode", "all", {"all", "channel", "element"},
                 "Which elements share an Alpha: all (all), those of a channel (channel), those "
                 "at one place of all samples (element).")};
  def.infer = [](OpContext& context) {
    CheckAlpha(context);
    context.SetOutputLike("Out", "X");
  };
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};

  OpDef grad = GradientOf(&def, {"Alpha", "Out@GRAD", "X"}, {"Alpha@GRAD", "X@GRAD"});
  grad.doc =
      "X@GRAD = Out@GRAD where X > 0, else Out@GRAD * Alpha; Alpha@GRAD = the sum of Out@GRAD * X "
      "where X <= 0.";
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "prelu", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "prelu_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
