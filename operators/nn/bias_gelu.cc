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
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/nn/kernels/gelu_rows.h"
#include "operators/nn/kernels/image_window.h"
#include "operators/nn/normalization/norm_arguments.h"
#include "operators/nn/normalization/row_sums.h"

namespace skiff {
namespace {

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
  const bool approximate = context.Attr<bool>("approximate");
  const In<T> x(context, "X");
  const WideInput<T> bias(context, "Bias");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto [rows, size] = Matrix(x.shape(run));
    const auto compute = [=, size = size, forward = GeluRowsOf<T>().forward, x = x(run),
                          bias = bias(run), out = out(run)](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        forward(approximate, x + row * size, bias, size, out + row * size);
      }
    };
    ParallelFor(rows, GrainOf(size), compute);
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
  const int memory =
      context.RequestWorkspace(RowSums(prepared.rows, prepared.size, /*arrays=*/1).bytes<T>());
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto [rows, size] = Matrix(x.shape(run));
    const RowSums sums(rows, size, /*arrays=*/1);
    const auto add_row = [=, size = size, backward = GeluRowsOf<T>().backward, x = x(run),
                          bias = bias(run), dout = dout(run),
                          dx = dx(run)](int64_t row, Wide* columns) {
      const int64_t at = row * size;
      backward(approximate, x + at, bias, dout + at, size, dx == nullptr ? nullptr : dx + at,
               columns);
    };
    sums.AddRows<T>(run.workspace(memory), add_row);
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
