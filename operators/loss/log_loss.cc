// log_loss: Loss = -Labels * log(Predicted + epsilon) - (1 - Labels) * log(1 - Predicted + epsilon)
// for probabilities. Source: Fluid's log_loss.
//
// Predicted@GRAD = Loss@GRAD * ((1 - Labels) / (1 - Predicted + epsilon)
//                               - Labels / (Predicted + epsilon)).
#include <cmath>
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
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const int predicted = context.InputIndex("Predicted");
  const int labels = context.InputIndex("Labels");
  const int loss = context.OutputIndex("Loss");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* p = run.input(predicted).data<T>();
    const T* label = run.input(labels).data<T>();
    T* losses = run.output(loss).data<T>();
    ParallelFor(run.input(predicted).element_count(), kLogLossGrain,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    losses[i] = -label[i] * std::log(p[i] + epsilon) -
                                (T{1} - label[i]) * std::log(T{1} - p[i] + epsilon);
                  }
                });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const int predicted = context.InputIndex("Predicted");
  const int labels = context.InputIndex("Labels");
  const int gradient = context.InputIndex("Loss@GRAD");
  const int dp = context.OutputIndex("Predicted@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* p = run.input(predicted).data<T>();
    const T* label = run.input(labels).data<T>();
    const T* from = run.input(gradient).data<T>();
    T* to = run.output(dp).data<T>();
    ParallelFor(run.input(predicted).element_count(), kLossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // The term of the label 0, whose loss rises with the probability.
        const T rising = (T{1} - label[i]) / (T{1} - p[i] + epsilon);
        to[i] = from[i] * (rising - label[i] / (p[i] + epsilon));
      }
    });
  });
}

}  // namespace

void RegisterLogLoss(OpRegistry& registry) {
  OpDef def = {
      .type = "log_loss",
      .doc =
          "Loss = -Labels * log(Predicted + epsilon) "
          "- (1 - Labels) * log(1 - Predicted + epsilon).",
      .inputs = {{.name = "Predicted", .doc = "Probabilities of the label 1, [N, 1]."},
                 {.name = "Labels", .doc = "0 or 1, or between, [N, 1], of Predicted's dtype."}},
      .outputs = {{.name = "Loss", .doc = "The losses, [N, 1]."}},
      .attrs = {{.name = "epsilon",
                 .type = AttrType::kFloat,
                 .default_value = {},
                 .doc = "A small number that keeps the logarithms finite."}},
      .infer =
          [](OpContext& context) {
            const TensorMeta& predicted = context.Input("Predicted");
            CheckInputLike(context, "Predicted", {-1, 1}, predicted.dtype);
            CheckInputLike(context, "Labels", predicted.shape, predicted.dtype);
            context.SetOutputLike("Loss", "Predicted");
          },
      .in_place = {{"Predicted", "Loss"}, {"Labels", "Loss"}}};
  OpDef grad = GradientOf(&def, {"Labels", "Loss@GRAD", "Predicted"}, {"Predicted@GRAD"});
  grad.doc =
      "Predicted@GRAD = Loss@GRAD * ((1 - Labels) / (1 - Predicted + epsilon) - "
      "Labels / (Predicted + epsilon)).";
  grad.in_place = {{"Loss@GRAD", "Predicted@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "log_loss", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "log_loss_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
