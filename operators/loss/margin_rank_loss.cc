// margin_rank_loss: Out = max(0, margin - Label * (X1 - X2)), where Label is 1 if X1 should rank
// above X2, and -1 if below. Source: margin_rank_loss of Fluid 1.8.
//
// X2@GRAD = Out@GRAD * Label where Out > 0, else 0; X1@GRAD = -X2@GRAD.
#include <memory>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/element_grains.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const T margin = static_cast<T>(context.Attr<float>("margin"));
  const int label = context.InputIndex("Label");
  const int x1 = context.InputIndex("X1");
  const int x2 = context.InputIndex("X2");
  const int activated = context.OutputIndex("Activated");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* sign = run.input(label).data<T>();
    const T* left = run.input(x1).data<T>();
    const T* right = run.input(x2).data<T>();
    T* is_active = run.output(activated).data<T>();
    T* losses = run.output(out).data<T>();
    ParallelFor(run.input(label).element_count(), kLossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T loss = margin - sign[i] * (left[i] - right[i]);
        losses[i] = loss < T{0} ? T{0} : loss;  // NaN stays NaN
        is_active[i] = loss > T{0} ? T{1} : T{0};
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int activated = context.InputIndex("Activated");
  const int label = context.InputIndex("Label");
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx1 = context.OutputIndex("X1@GRAD");
  const int dx2 = context.OutputIndex("X2@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* is_active = run.input(activated).data<T>();
    const T* sign = run.input(label).data<T>();
    const T* from = run.input(gradient).data<T>();
    T* left = dx1 < 0 ? nullptr : run.output(dx1).data<T>();
    T* right = dx2 < 0 ? nullptr : run.output(dx2).data<T>();
    ParallelFor(run.input(label).element_count(), kLossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // Everything is read before anything is written, since the outputs may be the inputs.
        const T slope = from[i] * sign[i] * is_active[i];
        if (left != nullptr) left[i] = -slope;
        if (right != nullptr) right[i] = slope;
      }
    });
  });
}

}  // namespace

void RegisterMarginRankLoss(OpRegistry& registry) {
  OpDef def = {.type = "margin_rank_loss",
               .doc = "Out = max(0, margin - Label * (X1 - X2)).",
               .inputs = {{.name = "X1", .doc = "Scores of the left items, [N, 1]."},
                          {.name = "X2", .doc = "Scores of the right items, [N, 1]."},
                          {.name = "Label", .doc = "1 or -1: whether X1 ranks above X2; [N, 1]."}},
               .outputs = {{.name = "Activated",
                            .doc = "1 where Out is above 0, for the gradient.",
                            .intermediate = true},
                           {.name = "Out", .doc = "The losses, [N, 1]."}},
               .attrs = {{.name = "margin",
                          .type = AttrType::kFloat,
                          .default_value = 0.0f,
                          .doc = "The difference below which a pair in the right order still has a "
                                 "loss."}},
               .infer =
                   [](OpContext& context) {
                     const TensorMeta& label = context.Input("Label");
                     CheckInputLike(context, "Label", {-1, 1}, label.dtype);
                     CheckInputLike(context, "X1", label.shape, label.dtype);
                     CheckInputLike(context, "X2", label.shape, label.dtype);
                     context.SetOutputLike("Activated", "Label");
                     context.SetOutputLike("Out", "X1");
                   },
               .in_place = {{"X1", "Out"}, {"X2", "Activated"}}};
  OpDef grad = GradientOf(&def, {"Activated", "Out@GRAD", "Label"}, {"X1@GRAD", "X2@GRAD"});
  grad.doc = "X2@GRAD = Out@GRAD * Label * Activated, X1@GRAD = -X2@GRAD.";
  grad.infer = [](OpContext& context) {
    const TensorMeta& label = context.Input("Label");
    CheckInputLike(context, "Activated", label.shape, label.dtype);
    CheckInputLike(context, "Out@GRAD", label.shape, label.dtype);
    context.SetOutputLike("X1@GRAD", "Label");
    context.SetOutputLike("X2@GRAD", "Label");
  };
  grad.in_place = {{"Out@GRAD", "X1@GRAD"}, {"Activated", "X2@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "margin_rank_loss", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "margin_rank_loss_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
