// logits_cross_entropy: the loss of softmax_with_cross_entropy for classes along the last dim,
// whose Softmax nobody reads:
//
//   Loss = log(sum_j exp(x_j - max)) + (max - x[label])
//
// Its gradient reads Logits and computes the probabilities again, with the same bits. So nothing as
// large as Logits is kept from the forward to the backward pass but Logits, which half may hold:
// all is computed in float32, row by row. The pass fuse_softmax_loss makes it, and it has no like
// in Fluid.
//
// Gradient: dLogits = dLoss * (Softmax - onehot), 0 in rows whose label is ignore_index.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/softmax_tiles.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/labels.h"

namespace skiff {
namespace {

constexpr int kLastAxis = -1;

// Logits as rows of classes; -1 is unknown.
struct ClassRows {
  explicit ClassRows(const Shape& logits)
      : count(logits.element_count(0, logits.rank() - 1)), classes(logits[logits.rank() - 1]) {}

  // The rows that are worth a thread.
  int64_t grain() const { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, classes)); }

  int64_t count;
  int64_t classes;
};

// Returns the shape of Loss.
Shape CheckedLossShape(const OpContext& context) {
  const TensorMeta& logits = context.Input("Logits");
  const int axis =
      NormalizeAxis(kLastAxis, logits.shape.rank(),
                    StrCat(context.op().type, ": the classes of Logits of shape ", logits.shape));
  CheckLabel(context.op().type, logits, context.Input("Label"), axis, /*is_soft=*/false);
  return LossShape(logits.shape, axis);
}

void Infer(OpContext& context) {
  const Shape shape = CheckedLossShape(context);
  context.SetOutputLike("Loss", "Logits");
  context.SetOutput("Loss", shape, context.Input("Logits").dtype);
}

void InferGrad(OpContext& context) {
  const Shape shape = CheckedLossShape(context);
  CheckInputLike(context, "Loss@GRAD", shape, context.Input("Logits").dtype);
  context.SetOutputLike("Logits@GRAD", "Logits");
}

// A row alone.
SoftmaxTile TileOfRow(int64_t classes) {
  return {.items = 1, .classes = classes, .item_stride = classes, .class_stride = 1};
}

// The labels of a run.
struct RowLabels {
  // Returns the class of a row, or -1 if it doesn't count. Notes a label that is no class.
  int64_t ClassOf(int64_t row) const {
    const int64_t label = labels[row];
    if (label == ignored) return -1;
    if (label >= 0 && label < classes) return label;
    bad->Record(row);
    return -1;
  }

  LabelReader labels;
  int64_t classes;
  int64_t ignored;
  FirstBadIndex* bad;
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  using Wide = WideType<T>;
  const ClassRows prepared(context.Input("Logits").shape);
  const int64_t ignored = context.IntAttr("ignore_index");
  const In<T> logits(context, "Logits");
  const In<> label(context, "Label");
  const Out<Wide> loss(context, "Loss");
  const ThreadScratch<T> scratch(context, prepared.count, /*rows=*/1, prepared.classes);
  return MakeRowsKernel([=](const KernelContext& run) {
    const ClassRows rows(logits.shape(run));
    FirstBadIndex bad;
    const RowLabels labels{LabelReader(label.tensor(run)), rows.classes, ignored, &bad};
    const SoftmaxTile tile = TileOfRow(rows.classes);
    const auto compute = [&, logits = logits(run), loss = loss(run)](int64_t row,
                                                                     const WideRows<T>& wide) {
      const int64_t of = labels.ClassOf(row);
      loss[row] = 0;
      if (of < 0) return;
      const Wide* x = ReadRow(logits, row * rows.classes, rows.classes, wide[0]);
      Wide max, sum;
      TileMax(tile, x, &max);
      TileExp<Wide>(tile, x, &max, nullptr, &sum);
      loss[row] = std::log(sum) + (max - x[of]);
    };
    scratch.ForEach(run, rows.count, rows.grain(), compute);
    ThrowIfFound(bad, "logits_cross_entropy", labels.labels, rows.classes, ignored);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  using Wide = WideType<T>;
  const ClassRows prepared(context.Input("Logits").shape);
  const int64_t ignored = context.IntAttr("ignore_index");
  const In<T> logits(context, "Logits");
  const In<> label(context, "Label");
  const In<Wide> gradient(context, "Loss@GRAD");
  const Out<T> dx(context, "Logits@GRAD");
  const ThreadScratch<T> scratch(context, prepared.count, /*rows=*/1, prepared.classes);
  return MakeRowsKernel([=](const KernelContext& run) {
    const ClassRows rows(logits.shape(run));
    FirstBadIndex bad;
    const RowLabels labels{LabelReader(label.tensor(run)), rows.classes, ignored, &bad};
    const SoftmaxTile tile = TileOfRow(rows.classes);
    const auto compute = [&, logits = logits(run), gradient = gradient(run), dx = dx(run)](
                             int64_t row, const WideRows<T>& wide) {
      const int64_t of = labels.ClassOf(row);
      const int64_t at = row * rows.classes;
      // A gradient of 0 is none, even where the probability is no number.
      if (of < 0 || gradient[row] == 0) return (void)std::fill_n(dx + at, rows.classes, T{});
      const Wide* x = ReadRow(logits, at, rows.classes, wide[0]);
      Wide* to = PlaceOfRow(dx, at, wide[0]);
      Wide max, sum;
      TileMax(tile, x, &max);
      TileExp(tile, x, &max, to, &sum);
      const Wide factor = 1 / sum;
      TileScale(tile, to, &factor, to);
      const Wide of_label = gradient[row] * (to[of] - 1);
      TileScale(tile, to, &gradient[row], to);
      to[of] = of_label;
      WriteRow(to, rows.classes, dx, at);
    };
    scratch.ForEach(run, rows.count, rows.grain(), compute);
    ThrowIfFound(bad, "logits_cross_entropy_grad", labels.labels, rows.classes, ignored);
  });
}

}  // namespace

void RegisterLogitsCrossEntropy(OpRegistry& registry) {
  OpDef def;
  def.type = "logits_cross_entropy";
  def.doc =
      "Loss = -log softmax(Logits)[label] along the last dim. Its gradient computes the "
      "probabilities again.";
  def.inputs = {{.name = "Logits", .doc = "Scores, with the classes in the last dim."},
                {.name = "Label",
                 .doc = "Classes, int64 or int32, of Logits' shape with 1 as the last dim.",
                 .checks_data = true}};
  def.outputs = {
      {.name = "Loss", .doc = "Of Logits' shape with 1 as the last dim.", .keeps_float32 = true}};
  def.attrs = {{.name = "ignore_index",
                .type = AttrType::kInt,
                .default_value = int32_t{-100},
                .doc = "Rows of this label have loss and gradient 0."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {"Logits", "Label", "Loss@GRAD"}, {"Logits@GRAD"});
  grad.doc = "dLogits = dLoss * (softmax(Logits) - label).";
  grad.infer = InferGrad;
  grad.in_place = {{"Logits", "Logits@GRAD"}};
  registry.Add(std::move(grad));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "logits_cross_entropy",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "logits_cross_entropy_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
