// logits_cross_entropy: the loss of softmax_with_cross_entropy for classes along the last dim,
// whose Softmax nobody reads:
//
//   Loss = log(sum_j exp(x_j - max)) + (max - x[label])
//
// Its gradient reads Logits and computes the probabilities again, with the same bits. So nothing as
// large as Logits is kept from the forward to the backward pass but Logits, which half may hold:
// all is computed in float32, tile by tile. The pass fuse_softmax_loss makes it, and it has no like
// in Fluid.
//
// Gradient: dLogits = dLoss * (Softmax - onehot), 0 in rows whose label is ignore_index.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
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

// Logits as tiles of rows of classes.
SoftmaxTiles TilesOf(const Shape& logits) {
  const int last = logits.rank() - 1;
  return {logits.element_count(0, last), logits[last], /*inner=*/1};
}

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

// The tiles of a run, for the op and its gradient.
template <typename T>
class LabeledTiles {
 public:
  explicit LabeledTiles(PrepareContext& context)
      : logits_(context, "Logits"),
        label_(context, "Label"),
        ignored_(context.IntAttr("ignore_index")),
        type_(context.op().type),
        scratch_(context, PreparedTiles(context).count(), /*rows=*/1,
                 PreparedTiles(context).tile_size()) {}

  // Calls compute(tile, classes, logits, wide) for each tile with a row that counts, skip(tile) for
  // the others, on several threads. `classes` has the class of each row, -1 of rows that don't
  // count: their label is ignored, or their `weight`, of each row of all, is 0; nullptr: no weight
  // is. `wide` has room for a tile of half, where the logits may be. Then throws Error if a label
  // is no class.
  template <typename Compute, typename Skip>
  void ForEach(const KernelContext& run, const WideType<T>* weight, const Compute& compute,
               const Skip& skip) const {
    const Shape& shape = logits_.shape(run);
    const int64_t classes = shape[shape.rank() - 1];
    const SoftmaxTiles tiles = TilesOf(shape);
    FirstBadIndex bad;
    const RowLabels labels{LabelReader(label_.tensor(run)), classes, ignored_, &bad};
    const T* logits = logits_(run);
    scratch_.ForEach(run, tiles.count(), tiles.grain(), [&](int64_t i, const WideRows<T>& wide) {
      const SoftmaxTile tile = tiles[i];
      int64_t of[SoftmaxTile::kMaxItems];
      bool any = false;
      for (int64_t j = 0; j < tile.items; ++j) {
        const int64_t row = tile.first_item + j;
        of[j] = labels.ClassOf(row);
        if (weight != nullptr && weight[row] == 0) of[j] = -1;
        any = any || of[j] >= 0;
      }
      if (!any) return skip(tile);
      compute(tile, of, ReadRow(logits, tile.offset, tile.items * tile.classes, wide[0]), wide);
    });
    ThrowIfFound(bad, type_, labels.labels, classes, ignored_);
  }

 private:
  static SoftmaxTiles PreparedTiles(const PrepareContext& context) {
    return TilesOf(context.Input("Logits").shape);
  }

  In<T> logits_;
  In<> label_;
  int64_t ignored_;
  std::string type_;
  ThreadScratch<T> scratch_;
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  using Wide = WideType<T>;
  const LabeledTiles<T> tiles(context);
  const Out<Wide> loss(context, "Loss");
  return MakeRowsKernel([=](const KernelContext& run) {
    Wide* all = loss(run);
    tiles.ForEach(
        run, nullptr,
        [all](const SoftmaxTile& tile, const int64_t* of, const Wide* x, const WideRows<T>&) {
          Wide max[SoftmaxTile::kMaxItems];
          Wide sum[SoftmaxTile::kMaxItems];
          TileMax(tile, x, max);
          TileExp<Wide>(tile, x, max, nullptr, sum);
          Wide* losses = all + tile.first_item;
          for (int64_t i = 0; i < tile.items; ++i, x += tile.classes) {
            losses[i] = of[i] < 0 ? 0 : std::log(sum[i]) + (max[i] - x[of[i]]);
          }
        },
        [all](const SoftmaxTile& tile) {
          std::fill_n(all + tile.first_item, tile.items, Wide{0});
        });
  });
}

// The gradient of a tile from its logits `x`, on which `to` may be. Rows without a class get 0,
// even where their probabilities are no numbers.
template <typename Wide>
void TileGradient(const SoftmaxTile& tile, const int64_t* of, const Wide* x, const Wide* gradient,
                  Wide* to) {
  Wide max[SoftmaxTile::kMaxItems];
  Wide sum[SoftmaxTile::kMaxItems];
  Wide of_label[SoftmaxTile::kMaxItems];
  TileMax(tile, x, max);
  TileExp(tile, x, max, to, sum);
  for (int64_t i = 0; i < tile.items; ++i) sum[i] = 1 / sum[i];
  TileScale(tile, to, sum, to);
  for (int64_t i = 0; i < tile.items; ++i) {
    if (of[i] >= 0) of_label[i] = gradient[i] * (to[i * tile.classes + of[i]] - 1);
  }
  TileScale(tile, to, gradient, to);
  for (int64_t i = 0; i < tile.items; ++i) {
    Wide* row = to + i * tile.classes;
    if (of[i] < 0) {
      std::fill_n(row, tile.classes, Wide{0});
    } else {
      row[of[i]] = of_label[i];
    }
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  using Wide = WideType<T>;
  const LabeledTiles<T> tiles(context);
  const In<Wide> loss_gradient(context, "Loss@GRAD");
  const Out<T> logits_gradient(context, "Logits@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Wide* gradient = loss_gradient(run);
    T* dx = logits_gradient(run);
    tiles.ForEach(
        run, gradient,
        [=](const SoftmaxTile& tile, const int64_t* of, const Wide* x, const WideRows<T>& wide) {
          Wide* to = PlaceOfRow(dx, tile.offset, wide[0]);
          TileGradient(tile, of, x, gradient + tile.first_item, to);
          WriteRow(to, tile.items * tile.classes, dx, tile.offset);
        },
        [=](const SoftmaxTile& tile) {
          std::fill_n(dx + tile.offset, tile.items * tile.classes, T{});
        });
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
