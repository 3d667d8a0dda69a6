// huber_loss: with r = Y - X, Out = r^2 / 2 where |r| <= delta, else delta * (|r| - delta / 2).
// Source: Fluid's huber_loss, after Huber: Robust Estimation of a Location Parameter (1964).
//
// Y@GRAD = Out@GRAD * min(max(r, -delta), delta), X@GRAD = -Y@GRAD.
#include <cmath>
#include <memory>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const T delta = static_cast<T>(context.Attr<float>("delta"));
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int out = context.OutputIndex("Out");
  const int residual = context.OutputIndex("Residual");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* from_x = run.input(x).data<T>();
    const T* from_y = run.input(y).data<T>();
    T* losses = run.output(out).data<T>();
    T* residuals = run.output(residual).data<T>();
    ParallelFor(run.input(x).element_count(), kLossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T r = from_y[i] - from_x[i];
        const T size = std::abs(r);
        residuals[i] = r;
        losses[i] = size <= delta ? r * r / 2 : delta * (size - delta / 2);
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const T delta = static_cast<T>(context.Attr<float>("delta"));
  const int residual = context.InputIndex("Residual");
  const int dout = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  const int dy = context.OutputIndex("Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* residuals = run.input(residual).data<T>();
    const T* from = run.input(dout).data<T>();
    T* to_x = dx < 0 ? nullptr : run.output(dx).data<T>();
    T* to_y = dy < 0 ? nullptr : run.output(dy).data<T>();
    ParallelFor(run.input(residual).element_count(), kLossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // Comparisons instead of min and max, so that NaN stays NaN.
        const T r = residuals[i];
        const T below = r > delta ? delta : r;
        const T slope = from[i] * (below < -delta ? -delta : below);
        // Not -slope, which would be -0 where the slope is 0.
        if (to_x != nullptr) to_x[i] = T{0} - slope;
        if (to_y != nullptr) to_y[i] = slope;
      }
    });
  });
}

}  // namespace

void RegisterHuberLoss(OpRegistry& registry) {
  OpDef def = {
      .type = "huber_loss",
      .doc = "With r = Y - X, Out = r^2 / 2 where |r| <= delta, else delta * (|r| - delta / 2).",
      .inputs = {{.name = "X", .doc = "Predictions."},
                 {.name = "Y", .doc = "Targets, of X's shape and dtype."}},
      .outputs = {{.name = "Out", .doc = "The losses, of X's shape."},
                  {.name = "Residual", .doc = "Y - X, for the gradient.", .intermediate = true}},
      .attrs = {{.name = "delta",
                 .type = AttrType::kFloat,
                 .default_value = {},
                 .doc = "The |r| at which the parabola becomes a line.",
                 .accepts = [](const Attribute& value) { return std::get<float>(value) >= 0; },
                 .expected = "at least 0"}},
      .infer =
          [](OpContext& context) {
            const TensorMeta& x = context.Input("X");
            CheckInputLike(context, "Y", x.shape, x.dtype);
            context.SetOutputLike("Out", "X");
            context.SetOutputLike("Residual", "X");
          },
      .in_place = {{"X", "Residual"}, {"Y", "Out"}},
      .zero_preserving = true,
      .elementwise = true};
  OpDef grad = GradientOf(&def, {"Out@GRAD", "Residual"}, {"X@GRAD", "Y@GRAD"});
  grad.doc = "Y@GRAD = Out@GRAD * min(max(Residual, -delta), delta), X@GRAD = -Y@GRAD.";
  grad.infer = [](OpContext& context) {
    const TensorMeta& residual = context.Input("Residual");
    CheckInputLike(context, "Out@GRAD", residual.shape, residual.dtype);
    context.SetOutputLike("X@GRAD", "Residual");
    context.SetOutputLike("Y@GRAD", "Residual");
  };
  grad.in_place = {{"Out@GRAD", "X@GRAD"}, {"Residual", "Y@GRAD"}};
  grad.zero_preserving = true;
  grad.elementwise = true;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "huber_loss", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("huber_loss_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
