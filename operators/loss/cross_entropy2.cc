// cross_entropy2: for probabilities X along the last dim, Y = -log MatchX with MatchX = X[label],
// what Fluid 1.4 to 1.8 write for a cross_entropy with hard labels. A probability of 0 counts as a
// loss of 1e20 instead of infinity. Y has the dims of the labels.
// Source: Fluid's cross_entropy2; dX[label] = -dY / MatchX. XShape has the dims of X for it.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/labels.h"

namespace skiff {
namespace {

constexpr int64_t kGrainElements = 16384;

// Returns the shape of the losses of an X with these dims. Throws Error unless the labels fit.
Shape CheckedLossShape(const OpContext& context, const Shape& x, DType dtype) {
  SKIFF_ENFORCE(x.rank() >= 1, kInvalidArgument, context.op().type, ": X is of shape ", x,
                ", expected at least one dim");
  const TensorMeta& label = context.Input("Label");
  CheckLabel(context.op().type, {.shape = x, .dtype = dtype}, label, x.rank() - 1,
             /*is_soft=*/false);
  return RowLossShape(x, label.shape);
}

// Returns the shape of MatchX, whose last dim is 1 even if the labels have none.
Shape MatchShape(Shape x) {
  x[x.rank() - 1] = 1;
  return x;
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const Shape losses = CheckedLossShape(context, x.shape, x.dtype);
  if (losses.rank() > 0) {
    // With the LoD of X, which has as many rows.
    context.SetOutputLike("Y", "X");
    context.SetOutputLike("MatchX", "X");
  }
  context.SetOutput("Y", losses, x.dtype);
  context.SetOutput("MatchX", MatchShape(x.shape), x.dtype);
  Shape x_shape = {0};
  for (const int64_t dim : x.shape) x_shape.Append(dim);
  context.SetOutput("XShape", x_shape, x.dtype);
}

// Returns the dims of X, which XShape has after a 0.
Shape DimsOfX(const OpContext& context) {
  return Shape(context.Input("XShape").shape.dims().subspan(1));
}

Shape CheckedDimsOfX(const OpContext& context) {
  const TensorMeta& x_shape = context.Input("XShape");
  const DType dtype = context.Input("MatchX").dtype;
  SKIFF_ENFORCE(x_shape.shape.rank() >= 2 && x_shape.shape[0] <= 0 && x_shape.dtype == dtype,
                kInvalidArgument, context.op().type, ": XShape is ", x_shape.dtype, " ",
                x_shape.shape, ", expected ", dtype, " [0] + the dims of X");
  return DimsOfX(context);
}

void InferGrad(OpContext& context) {
  const Shape x = CheckedDimsOfX(context);
  const DType dtype = context.Input("MatchX").dtype;
  const Shape losses = CheckedLossShape(context, x, dtype);
  CheckInputLike(context, "MatchX", MatchShape(x), dtype);
  CheckInputLike(context, "Y@GRAD", losses, dtype);
  if (losses.rank() > 0) context.SetOutputLike("X@GRAD", "Y@GRAD");
  context.SetOutput("X@GRAD", x, dtype);
}

struct Settings {
  Settings(const OpContext& context, const Shape& x)
      : rows(x.element_count(0, x.rank() - 1)),
        classes(x.dim(-1)),
        ignore_index(context.IntAttr("ignore_index")) {}

  bool IsClass(int64_t label) const { return label >= 0 && label < classes; }

  int64_t rows;
  int64_t classes;
  int64_t ignore_index;
};

template <typename T>
void Losses(const Settings& settings, const T* x, const LabelReader& labels, T* losses,
            T* matches) {
  // A parallel body must not throw. It records the first row with a bad label, and the Error
  // follows.
  FirstBadIndex bad;
  ParallelFor(settings.rows, kGrainElements / 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = labels[row];
      losses[row] = matches[row] = 0;
      if (label == settings.ignore_index) continue;
      if (settings.IsClass(label)) {
        matches[row] = x[row * settings.classes + label];
        losses[row] = -BoundedLog(matches[row]);
      } else {
        bad.Record(row);
      }
    }
  });
  ThrowIfFound(bad, "cross_entropy2", labels, settings.classes, settings.ignore_index);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Settings settings(context, context.Input("X").shape);
  const In<T> x(context, "X");
  const In<> label(context, "Label");
  const Out<T> y(context, "Y");
  const Out<T> match(context, "MatchX");
  return MakeKernel([=](const KernelContext& run) {
    Losses(settings, x(run), LabelReader(label.tensor(run)), y(run), match(run));
  });
}

template <typename T>
void Gradients(const Settings& settings, const LabelReader& labels, const T* matches, const T* dy,
               T* dx) {
  FirstBadIndex bad;
  const int64_t grain =
      std::max<int64_t>(1, kGrainElements / std::max<int64_t>(settings.classes, 1));
  ParallelFor(settings.rows, grain, [&](int64_t begin, int64_t end) {
    // Only one class of a row has a gradient.
    std::fill(dx + begin * settings.classes, dx + end * settings.classes, T{0});
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = labels[row];
      if (label == settings.ignore_index) continue;
      if (settings.IsClass(label)) {
        dx[row * settings.classes + label] = -dy[row] / matches[row];
      } else {
        bad.Record(row);
      }
    }
  });
  ThrowIfFound(bad, "cross_entropy_grad2", labels, settings.classes, settings.ignore_index);
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const Settings settings(context, DimsOfX(context));
  const In<> label(context, "Label");
  const In<T> match(context, "MatchX");
  const In<T> gradient(context, "Y@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeKernel([=](const KernelContext& run) {
    Gradients(settings, LabelReader(label.tensor(run)), match(run), gradient(run), dx(run));
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "ignore_index",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-100}),
           .doc = "Rows of this label have loss and gradient 0."}};
}

}  // namespace

void RegisterCrossEntropy2(OpRegistry& registry) {
  registry.Add(
      {.type = "cross_entropy2",
       .doc = "Y = -log X[label]. Fluid's cross_entropy2.",
       .inputs = {{.name = "X", .doc = "Probabilities, [..., classes]."},
                  {.name = "Label",
                   .doc = "Classes, [..., 1], int64 or int32.",
                   .checks_data = true}},
       .outputs = {{.name = "Y", .doc = "The loss of each row, [..., 1]."},
                   {.name = "MatchX",
                    .doc = "X[label], [..., 1].",
                    .intermediate = true,
                    .keeps_float32 = true},
                   {.name = "XShape",
                    .doc = "[0] + the dims of X: carries the shape to the gradient and holds no "
                           "elements.",
                    .dispensable = true,
                    .intermediate = true}},
       .attrs = Attributes(),
       .infer = Infer,
       .grad = GradOp("cross_entropy_grad2", {"MatchX", "Label", "XShape", "Y@GRAD"}, {"X@GRAD"}),
       .precision = Precision::kHigh});
  registry.Add(
      {.type = "cross_entropy_grad2",
       .doc = "The gradient of cross_entropy2: dX[label] = -dY / MatchX.",
       .inputs = {{.name = "MatchX", .doc = "The output of the forward op.", .keeps_float32 = true},
                  {.name = "Label", .doc = "The labels of the forward op.", .checks_data = true},
                  {.name = "XShape", .doc = "[0] + the dims of X.", .shape_only = true},
                  {.name = "Y@GRAD", .doc = "The gradient of Y."}},
       .outputs = {{.name = "X@GRAD", .doc = "Of X's shape."}},
       .attrs = Attributes(),
       .infer = InferGrad,
       .no_gradient_reason = "second derivatives are not provided",
       .precision = Precision::kHigh,
       .data_checked_by = "cross_entropy2"});
  registry.AddCpuKernels<float, double>(
      "cross_entropy2", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "cross_entropy_grad2",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
