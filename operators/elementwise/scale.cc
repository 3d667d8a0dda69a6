// scale: Out = scale * X + bias, or scale * (X + bias) unless bias_after_scale. Source: Fluid's
// scale. For integers, both numbers are truncated to integers first, as in Fluid.
//
// The gradient is a scale without bias. For selected rows, the values are scaled, and a bias is an
// Error: it would change the absent rows, too.
#include <utility>

#include "framework/op/grad.h"
#include "operators/common/input_checks.h"
#include "operators/common/integer.h"
#include "operators/common/selected_rows.h"
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/scale.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/elementwise/kernels/scale_formula-inl.h"

void ScaleLoop(const float* x, float factor, float bias, bool bias_first, float* out,
               int64_t count) {
  if (bias_first) {
    UnaryLoop(
        [=]<class D, class V>(D, V v) HWY_ATTR {
          using L = Lanes<D>;
          return ShiftedAndScaled(L(v), L(factor), L(bias)).v;
        },
        x, out, count);
  } else {
    UnaryLoop(
        [=]<class D, class V>(D, V v) HWY_ATTR {
          using L = Lanes<D>;
          return Scaled(L(v), L(factor), L(bias)).v;
        },
        x, out, count);
  }
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

#include "operators/elementwise/kernels/scale_formula-inl.h"

HWY_EXPORT(ScaleLoop);

template <typename T>
void ScaleArray(const T* x, T factor, T bias, bool bias_first, T* out, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(ScaleLoop)(x, factor, bias, bias_first, out, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = bias_first ? ShiftedAndScaled(x[i], factor, bias) : Scaled(x[i], factor, bias);
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareScale(PrepareContext& context) {
  const In<T> x(context, "X");
  const In<T> factor_tensor(context, "ScaleTensor");
  const Out<T> out(context, "Out");
  const T factor_attr = FromFloat<T>(context.Attr<float>("scale"));
  const T bias = FromFloat<T>(context.Attr<float>("bias"));
  const bool bias_first = !context.Attr<bool>("bias_after_scale");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T factor = factor_tensor.is_there() ? *factor_tensor(run) : factor_attr;
    const T* from = x(run);
    T* to = out(run);
    ParallelFor(StorageElements(x.tensor(run)), kVectorGrain, [&](int64_t begin, int64_t end) {
      ScaleArray(from + begin, factor, bias, bias_first, to + begin, end - begin);
    });
  });
}

template <typename T>
void AddScaleKernel(OpRegistry& registry) {
  AddElementwiseKernel<T>(registry, "scale", {"X", "Out"}, PrepareScale<T>);
}

std::vector<Op> ScaleGradient(const GradContext& context) {
  Op grad("scale");
  // The op is linear, so it is its own gradient: dX = scale * dOut.
  grad.attrs = context.forward().attrs;
  grad.SetInput("X", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("X"));
  const std::vector<std::string>& factor = context.Input("ScaleTensor");
  if (!factor.empty()) grad.SetInput("ScaleTensor", factor);
  grad.SetAttr("bias", 0.0f).SetAttr("bias_after_scale", true);
  return {std::move(grad)};
}

void InferScale(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  if (context.HasInput("ScaleTensor")) {
    const TensorMeta& factor = context.Input("ScaleTensor");
    SKIFF_ENFORCE(factor.dtype == x.dtype, kInvalidArgument, "scale: ScaleTensor is ", factor.dtype,
                  ", expected X's ", x.dtype);
    CheckOneElement(context, "ScaleTensor");
  }
  const float bias = context.Attr<float>("bias");
  SKIFF_ENFORCE(bias == 0 || !x.is_selected_rows(), kInvalidArgument, "scale: bias = ", bias,
                " and X is selected rows, expected no bias or a dense X");
  context.SetOutputLike("Out", "X");
}

}  // namespace

void RegisterScale(OpRegistry& registry) {
  OpDef def;
  def.type = "scale";
  def.doc = "Out = scale * X + bias, or scale * (X + bias) unless bias_after_scale.";
  def.inputs = {{.name = "X", .doc = "The operand, of any shape.", .selected_rows = true},
                {.name = "ScaleTensor",
                 .doc = "One number of X's dtype, instead of the attribute scale.",
                 .dispensable = true,
                 .keeps_float32 = true}};
  def.outputs = {{.name = "Out", .doc = "The result, of X's shape.", .selected_rows = true}};
  def.attrs = {
      {.name = "scale", .type = AttrType::kFloat, .default_value = 1.0f, .doc = "The factor."},
      {.name = "bias", .type = AttrType::kFloat, .default_value = 0.0f, .doc = "The number added."},
      {.name = "bias_after_scale",
       .type = AttrType::kBool,
       .default_value = true,
       .doc = "Whether the bias is added after the multiplication."}};
  def.infer = InferScale;
  def.precision = Precision::kFollow;
  def.grad = ScaleGradient;
  def.in_place = {{"X", "Out"}};
  def.elementwise = true;
  registry.Add(std::move(def));
  AddScaleKernel<float>(registry);
  AddScaleKernel<double>(registry);
  AddScaleKernel<int32_t>(registry);
  AddScaleKernel<int64_t>(registry);
  // For selected rows: only their values are scaled.
  AddValuesKernel<float>(registry, "scale", PrepareScale<float>);
  AddValuesKernel<double>(registry, "scale", PrepareScale<double>);
}

}  // namespace skiff
#endif  // HWY_ONCE
