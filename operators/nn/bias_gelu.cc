// bias_gelu: a bias for each element of a row, the last dim, and gelu, as one op.
//
//   Out = gelu(X + Bias), exact or approximated by tanh (operators/common/gelu_formula-inl.h)
//
// The same numbers come out as of elementwise_add and gelu. It is made by the pass fuse_bias_act
// and has no like in Fluid.
//
// Gradient: X@GRAD = Out@GRAD * gelu'(X + Bias), Bias@GRAD = its sum over rows. It adds X and Bias
// again: keeping X takes as much memory as keeping the sum, and the sum is never written.
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/nn/kernels/image_window.h"
#include "operators/nn/normalization/norm_arguments.h"
#include "operators/nn/normalization/row_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/bias_gelu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/formula-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/common/gelu_formula-inl.h"

// Elements [i, i + lanes of d) of a row.
template <class D>
HWY_INLINE void GeluStep(D d, bool approximate, const float* x, const float* bias, int64_t i,
                         float* out) {
  const Lanes<D> biased(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, bias + i)));
  hn::StoreU(Gelu(biased, approximate).v, d, out + i);
}

void GeluRow(bool approximate, const float* x, const float* bias, int64_t count, float* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) GeluStep(d, approximate, x, bias, i, out);
  for (; i < count; ++i) GeluStep(one, approximate, x, bias, i, out);
}

template <class D>
HWY_INLINE void GeluGradStep(D d, bool approximate, const float* x, const float* bias,
                             const float* dout, int64_t i, float* dx, float* sums) {
  const Lanes<D> biased(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, bias + i)));
  const auto gradient = hn::Mul(hn::LoadU(d, dout + i), GeluSlope(biased, approximate).v);
  if (dx != nullptr) hn::StoreU(gradient, d, dx + i);
  hn::StoreU(hn::Add(hn::LoadU(d, sums + i), gradient), d, sums + i);
}

void GeluGradRow(bool approximate, const float* x, const float* bias, const float* dout,
                 int64_t count, float* dx, float* sums) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) GeluGradStep(d, approximate, x, bias, dout, i, dx, sums);
  for (; i < count; ++i) GeluGradStep(one, approximate, x, bias, dout, i, dx, sums);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(GeluRow);
HWY_EXPORT(GeluGradRow);

void RowOf(bool approximate, const float* x, const float* bias, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(GeluRow)(approximate, x, bias, count, out);
}

void RowOf(bool approximate, const double* x, const double* bias, int64_t count, double* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = HWY_NAMESPACE::Gelu(x[i] + bias[i], approximate);
}

// Adds the gradient to `sums`. dx may be nullptr; it may be x or dout.
void GradRowOf(bool approximate, const float* x, const float* bias, const float* dout,
               int64_t count, float* dx, float* sums) {
  HWY_DYNAMIC_DISPATCH(GeluGradRow)(approximate, x, bias, dout, count, dx, sums);
}

void GradRowOf(bool approximate, const double* x, const double* bias, const double* dout,
               int64_t count, double* dx, double* sums) {
  for (int64_t i = 0; i < count; ++i) {
    const double gradient = dout[i] * HWY_NAMESPACE::GeluSlope(x[i] + bias[i], approximate);
    if (dx != nullptr) dx[i] = gradient;
    sums[i] += gradient;
  }
}

// X as a matrix whose rows are the last dim; -1 is unknown.
struct Matrix {
  explicit Matrix(const Shape& x) {
    rows = x.element_count(0, x.rank() - 1);
    size = x[x.rank() - 1];
  }

  int64_t rows = 1;
  int64_t size = 1;
};

void CheckBias(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() >= 1, kInvalidArgument, context.op().type, ": X of shape ", x,
                ", expected rank 1 or more");
  CheckVectors(context, {"Bias"}, x[x.rank() - 1], "element of a row");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  using Wide = WideType<T>;
  const Matrix prepared(context.Input("X").shape);
  const bool approximate = context.Attr<bool>("approximate");
  const In<T> x(context, "X");
  const WideInput<T> bias(context, "Bias");
  const Out<T> out(context, "Out");
  const ThreadScratch<T> scratch(context, prepared.rows, /*rows=*/1, prepared.size);
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto [rows, size] = Matrix(x.shape(run));
    const auto compute = [&, size = size, x = x(run), bias = bias(run), out = out(run)](
                             int64_t row, const WideRows<T>& wide) {
      const int64_t at = row * size;
      Wide* to = PlaceOfRow(out, at, wide[0]);
      RowOf(approximate, ReadRow(x, at, size, wide[0]), bias, size, to);
      WriteRow(to, size, out, at);
    };
    scratch.ForEach(run, rows, GrainOf(size), compute);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  using Wide = WideType<T>;
  const Matrix prepared(context.Input("X").shape);
  const bool approximate = context.Attr<bool>("approximate");
  const In<T> x(context, "X");
  const WideInput<T> bias(context, "Bias");
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dbias(context, "Bias@GRAD");
  const ThreadScratch<T> scratch(context, prepared.rows, /*rows=*/2, prepared.size);
  const int memory =
      context.RequestWorkspace(RowSums(prepared.rows, prepared.size, /*arrays=*/1).bytes<T>());
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto [rows, size] = Matrix(x.shape(run));
    const RowSums sums(rows, size, /*arrays=*/1);
    const auto add_row = [&, size = size, x = x(run), bias = bias(run), dout = dout(run),
                          dx = dx(run)](int64_t row, Wide* columns, const WideRows<T>& wide) {
      const int64_t at = row * size;
      Wide* to = PlaceOfRow(dx, at, wide[0]);
      GradRowOf(approximate, ReadRow(x, at, size, wide[0]), bias, ReadRow(dout, at, size, wide[1]),
                size, to, columns);
      WriteRow(to, size, dx, at);
    };
    sums.AddRows(run, scratch, run.workspace(memory), add_row);
    sums.Write(run.workspace(memory), 0, dbias(run));
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "approximate",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether to approximate gelu by tanh."}};
}

OpDef BiasGeluDef() {
  OpDef def;
  def.type = "bias_gelu";
  def.doc = "Out = gelu(X + Bias), with a bias for each element of the last dim.";
  def.inputs = {{.name = "X", .doc = "Of rank 1 or more."},
                {.name = "Bias", .doc = "[elements of the last dim]."}};
  def.outputs = {{.name = "Out", .doc = "Like X."}};
  def.attrs = Attributes();
  def.infer = [](OpContext& context) {
    CheckBias(context);
    context.SetOutputLike("Out", "X");
  };
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  return def;
}

OpDef BiasGeluGradDef(OpDef* forward) {
  OpDef def = GradientOf(forward, {"X", "Bias", "Out@GRAD"}, {"X@GRAD", "Bias@GRAD"});
  def.doc =
      "X@GRAD = Out@GRAD times the derivative of gelu at X + Bias; Bias@GRAD = the sum of X@GRAD "
      "over all dims but the last.";
  def.in_place = {{"Out@GRAD", "X@GRAD"}, {"X", "X@GRAD"}};
  return def;
}

}  // namespace

void RegisterBiasGelu(OpRegistry& registry) {
  OpDef def = BiasGeluDef();
  registry.Add(BiasGeluGradDef(&def));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "bias_gelu", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "bias_gelu_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
