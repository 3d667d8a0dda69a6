// cross_entropy: for probabilities X along the last dim, Y = -log X[label], or with soft labels
// Y = -sum_c label_c * log X_c. A probability of 0 counts as a loss of 1e20 instead of infinity.
// Y has the dims of hard labels: it has a last dim of 1 if Label does.
// Source: Fluid's cross_entropy; dX = -dY * label / X.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/loss/kernels/labels.h"

namespace skiff {
namespace {

constexpr int64_t kGrainElements = 16384;

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const TensorMeta& label = context.Input("Label");
  SKIFF_ENFORCE(x.shape.rank() >= 1, kInvalidArgument, context.op().type, ": X is of shape ",
                x.shape, ", expected at least one dim");
  CheckLabel(context.op().type, x, label, x.shape.rank() - 1, context.Attr<bool>("soft_label"));
  const Shape losses = RowLossShape(x.shape, label.shape);
  if (losses.rank() > 0) context.SetOutputLike("Y", "X");
  context.SetOutput("Y", losses, x.dtype);
}

template <typename T>
T SoftLoss(const T* x, const T* label, int64_t classes) {
  T loss = 0;
  for (int64_t c = 0; c < classes; ++c) {
    // A class of weight 0 contributes nothing, even if its probability is 0.
    if (label[c] != 0) loss -= label[c] * BoundedLog(x[c]);
  }
  return loss;
}

struct Settings {
  explicit Settings(const OpContext& context)
      : classes(context.Input("X").shape.dim(-1)),
        soft(context.Attr<bool>("soft_label")),
        ignore_index(context.IntAttr("ignore_index")),
        grain(std::max<int64_t>(1, kGrainElements / (soft ? std::max<int64_t>(classes, 1) : 8))) {}

  bool IsClass(int64_t label) const { return label >= 0 && label < classes; }

  int64_t classes;
  bool soft;
  int64_t ignore_index;
  int64_t grain;
};

template <typename T>
void HardLosses(const Settings& settings, int64_t rows, const T* x, const LabelReader& labels,
                T* losses) {
  // A parallel body must not throw. It records the first row with a bad label, and the Error
  // follows.
  FirstBadIndex bad;
  ParallelFor(rows, settings.grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = labels[row];
      losses[row] = 0;
      if (label == settings.ignore_index) continue;
      if (settings.IsClass(label)) {
        losses[row] = -BoundedLog(x[row * settings.classes + label]);
      } else {
        bad.Record(row);
      }
    }
  });
  ThrowIfFound(bad, "cross_entropy", labels, settings.classes, settings.ignore_index);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Settings settings(context);
  const In<T> x(context, "X");
  const In<> label(context, "Label");
  const Out<T> y(context, "Y");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* from = x(run);
    T* losses = y(run);
    const int64_t rows = y.count(run);
    if (!settings.soft) {
      return HardLosses(settings, rows, from, LabelReader(label.tensor(run)), losses);
    }
    const T* weights = label.as<T>(run);
    ParallelFor(rows, settings.grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * settings.classes;
        losses[row] = SoftLoss(from + at, weights + at, settings.classes);
      }
    });
  });
}

template <typename T>
void SoftGradients(const Settings& settings, int64_t rows, const T* x, const T* weights,
                   const T* dy, T* dx) {
  ParallelFor(rows, settings.grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * settings.classes; i < end * settings.classes; ++i) {
      // As in the loss, a class of weight 0 doesn't count, even where X is 0.
      dx[i] = weights[i] == 0 ? T{0} : -dy[i / settings.classes] * weights[i] / x[i];
    }
  });
}

template <typename T>
void HardGradients(const Settings& settings, int64_t rows, const T* x, const LabelReader& labels,
                   const T* dy, T* dx) {
  FirstBadIndex bad;
  // Each row writes all its classes, while the loss reads only one element of a row.
  const int64_t grain =
      std::max<int64_t>(1, kGrainElements / std::max<int64_t>(settings.classes, 1));
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    // Only one class of a row has a gradient.
    std::fill(dx + begin * settings.classes, dx + end * settings.classes, T{0});
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = labels[row];
      if (label == settings.ignore_index) continue;
      if (settings.IsClass(label)) {
        const int64_t at = row * settings.classes + label;
        dx[at] = -dy[row] / x[at];
      } else {
        bad.Record(row);
      }
    }
  });
  ThrowIfFound(bad, "cross_entropy_grad", labels, settings.classes, settings.ignore_index);
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const Settings settings(context);
  const In<T> x(context, "X");
  const In<> label(context, "Label");
  const In<T> gradient(context, "Y@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T* from = x(run);
    const T* dy = gradient(run);
    const int64_t rows = gradient.count(run);
    T* to = dx(run);
    if (settings.soft) {
      SoftGradients(settings, rows, from, label.as<T>(run), dy, to);
    } else {
      HardGradients(settings, rows, from, LabelReader(label.tensor(run)), dy, to);
    }
  });
}

}  // namespace

void RegisterCrossEntropy(OpRegistry& registry) {
  OpDef def = {.type = "cross_entropy",
               .doc =
                   "Y = -log X[label], or with soft labels -sum of label * log X. Fluid's "
                   "cross_entropy.",
               .inputs = {{.name = "X", .doc = "Probabilities, [..., classes]."},
                          {.name = "Label",
                           .doc = "Classes, [..., 1], int64 or int32; soft: of X's shape.",
                           .checks_data = true}},
               .outputs = {{.name = "Y", .doc = "The loss of each row, [..., 1]."}},
               .attrs = {{.name = "soft_label",
                          .type = AttrType::kBool,
                          .default_value = Attribute(false),
                          .doc = "Label holds a weight per class instead of a class."},
                         {.name = "ignore_index",
                          .type = AttrType::kInt,
                          .default_value = Attribute(int32_t{-100}),
                          .doc = "Rows of this (hard) label have loss and gradient 0."}},
               .infer = Infer};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"X", "Label", "Y@GRAD"}, {"X@GRAD"});
  grad.doc = "The gradient of cross_entropy: dX = -dY * label / X.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "cross_entropy", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "cross_entropy_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
