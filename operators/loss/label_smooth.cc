// label_smooth: Out = (1 - epsilon) * X + epsilon * p, where p is PriorDist along the last dim or,
// if it is absent, 1 / the number of classes. Source: Fluid's label_smooth, after Szegedy et al.:
// Rethinking the Inception Architecture for Computer Vision (2015).
//
// X@GRAD = (1 - epsilon) * Out@GRAD.
#include <algorithm>
#include <memory>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/loss/kernels/element_grains.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/label_smooth_formula-inl.h"

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const T kept = T{1} - epsilon;
  const In<T> x(context, "X");
  const In<T> prior(context, "PriorDist");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t count = x.count(run);
    // Of a vector, the classes are the rows.
    const int64_t classes = x.shape(run).dim(-1);
    const T* from = x(run);
    T* to = out(run);
    if (!prior.is_there()) {
      const T share = epsilon / static_cast<T>(classes);
      ParallelFor(count, kLossGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = SmoothedLabel(from[i], kept, share);
      });
      return;
    }
    const T* shares = prior(run);
    const int64_t rows = classes == 0 ? 0 : count / classes;
    const int64_t grain = std::max<int64_t>(1, kLossGrain / std::max<int64_t>(classes, 1));
    ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* labels = from + row * classes;
        T* smooth = to + row * classes;
        for (int64_t c = 0; c < classes; ++c)
          smooth[c] = SmoothedLabel(labels[c], kept, epsilon * shares[c]);
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const T kept = T{1} - static_cast<T>(context.Attr<float>("epsilon"));
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* from = dout(run);
    T* to = dx(run);
    ParallelFor(dout.count(run), kLossGrain, [&](int64_t begin, int64_t end) {
      ScaleArray(from + begin, kept, to + begin, end - begin);
    });
  });
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.shape.rank() >= 1, kInvalidArgument,
                "label_smooth: X is of rank 0, expected at least one dim");
  if (context.HasInput("PriorDist")) {
    const TensorMeta& prior = context.Input("PriorDist");
    const int64_t classes = x.shape.dim(-1);
    SKIFF_ENFORCE(prior.dtype == x.dtype, kInvalidArgument, "label_smooth: PriorDist is ",
                  prior.dtype, ", expected X's ", x.dtype);
    SKIFF_ENFORCE(
        classes == -1 || !prior.shape.is_known() || prior.shape.element_count() == classes,
        kInvalidArgument, "label_smooth: PriorDist has shape ", prior.shape,
        ", expected an element for each of the ", classes, " classes of X ", x.shape);
  }
  context.SetOutputLike("Out", "X");
}

}  // namespace

void RegisterLabelSmooth(OpRegistry& registry) {
  OpDef def = {.type = "label_smooth",
               .doc = "Out = (1 - epsilon) * X + epsilon * PriorDist (if absent, 1 / classes).",
               .inputs = {{.name = "X", .doc = "Labels as distributions, [..., classes]."},
                          {.name = "PriorDist",
                           .doc = "A distribution, one element per class; uniform if absent.",
                           .dispensable = true}},
               .outputs = {{.name = "Out", .doc = "Smooth labels, of X's shape."}},
               .attrs = {{.name = "epsilon",
                          .type = AttrType::kFloat,
                          .default_value = 0.0f,
                          .doc = "The share of the prior distribution, usually between 0 and 1."}},
               .infer = Infer,
               .kernel_dtype_slot = "X",
               .in_place = {{"X", "Out"}}};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = (1 - epsilon) * Out@GRAD.";
  grad.infer = [](OpContext& context) { context.SetOutputLike("X@GRAD", "Out@GRAD"); };
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  grad.elementwise = true;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "label_smooth", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "label_smooth_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
