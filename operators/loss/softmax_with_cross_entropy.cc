// softmax_with_cross_entropy: Softmax = softmax(Logits) along `axis`, and per item
//   Loss = log(sum_j exp(x_j - max)) + (max - x[label]),             hard labels
//   Loss = sum(label) * log(sum_j exp(x_j - max)) + sum_c label_c * (max - x_c),  soft labels
// which never takes the logarithm of a small probability. With use_softmax = false, Logits are
// probabilities already: Softmax is a copy and Loss = -log(Logits[label]).
// Source: Fluid's softmax_with_cross_entropy. dLogits = dLoss * (Softmax - onehot), soft labels:
// dLoss * (Softmax * sum(label) - label); Fluid takes the sum of a row's labels for 1.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cpu/softmax_tiles.h"
#include "operators/common/input_checks.h"
#include "operators/loss/kernels/labels.h"

namespace skiff {
namespace {

constexpr int64_t kMaxItems = SoftmaxTile::kMaxItems;

// `scores` is Logits in the forward op and Softmax in its gradient.
int AxisOf(const OpContext& context, const TensorMeta& scores) {
  return NormalizeAxis(context.IntAttr("axis"), scores.shape.rank(),
                       StrCat(context.op().type, ": axis of scores of shape ", scores.shape));
}

void Infer(OpContext& context) {
  const TensorMeta& logits = context.Input("Logits");
  const int axis = AxisOf(context, logits);
  CheckLabel(context.op().type, logits, context.Input("Label"), axis,
             context.Attr<bool>("soft_label"));
  context.SetOutputLike("Softmax", "Logits");
  context.SetOutputLike("Loss", "Logits");
  context.SetOutput("Loss", LossShape(logits.shape, axis), logits.dtype);
}

void InferGrad(OpContext& context) {
  const TensorMeta& softmax = context.Input("Softmax");
  const int axis = AxisOf(context, softmax);
  CheckLabel(context.op().type, softmax, context.Input("Label"), axis,
             context.Attr<bool>("soft_label"));
  CheckInputLike(context, "Loss@GRAD", LossShape(softmax.shape, axis), softmax.dtype);
  context.SetOutputLike("Logits@GRAD", "Softmax");
}

struct Settings {
  Settings(const OpContext& context, const TensorMeta& scores)
      : axis(AxisOf(context, scores)),
        extents(ExtentsOfAxis(scores.shape, axis)),
        soft(context.Attr<bool>("soft_label")),
        use_softmax(context.Attr<bool>("use_softmax")),
        skips_ignored(context.Attr<bool>("skip_ignored") && !soft && use_softmax &&
                      extents.inner == 1),
        ignore_index(context.IntAttr("ignore_index")) {}

  // The same for the rows of a run.
  Settings For(const Tensor& scores) const {
    Settings of_run = *this;
    of_run.extents = ExtentsOfAxis(scores.shape(), axis);
    return of_run;
  }

  bool IsClass(int64_t label) const { return label >= 0 && label < extents.length; }

  int axis;  // of the classes
  AxisExtents extents;
  bool soft;
  bool use_softmax;
  bool skips_ignored;  // in the forward op
  int64_t ignore_index;
};

// The hard labels of one run.
struct HardLabels {
  const Settings& settings;
  LabelReader labels;
  FirstBadIndex* bad;

  // Calls visit(i, place of the label's class in the tile) for items of the tile that count.
  template <typename Visit>
  void ForItems(const SoftmaxTile& tile, const Visit& visit) const {
    for (int64_t i = 0; i < tile.items; ++i) {
      const int64_t label = labels[tile.first_item + i];
      if (label == settings.ignore_index) continue;
      if (settings.IsClass(label)) {
        visit(i, i * tile.item_stride + label * tile.class_stride);
      } else {
        bad->Record(tile.first_item + i);
      }
    }
  }
};

// Calls visit(part, whether it counts) for the parts of a tile of rows whose rows count, or don't,
// which counts(index of the row) tells.
template <typename Counts, typename Visit>
void ForPartsOfRows(const SoftmaxTile& tile, const Counts& counts, const Visit& visit) {
  for (int64_t begin = 0; begin < tile.items;) {
    const bool counted = counts(tile.first_item + begin);
    int64_t end = begin + 1;
    while (end < tile.items && counts(tile.first_item + end) == counted) ++end;
    SoftmaxTile part = tile;
    part.items = end - begin;
    part.offset += begin * tile.item_stride;
    part.first_item += begin;
    visit(part, counted);
    begin = end;
  }
}

// Calls visit(place, item) for all values of a tile in the order of memory.
template <typename Visit>
void ForValues(const SoftmaxTile& tile, const Visit& visit) {
  if (tile.class_stride == 1) {
    for (int64_t i = 0; i < tile.items; ++i) {
      for (int64_t c = 0; c < tile.classes; ++c) visit(i * tile.item_stride + c, i);
    }
    return;
  }
  for (int64_t c = 0; c < tile.classes; ++c) {
    for (int64_t i = 0; i < tile.items; ++i) visit(c * tile.class_stride + i, i);
  }
}

template <typename T>
struct Tensors {
  const T* logits;
  const T* soft_labels;  // nullptr with hard ones, and without classes
  T* softmax;            // nullptr if nobody reads it; may be `logits`
  T* loss;               // nullptr if nobody reads it

  // Those of a tile.
  Tensors At(const SoftmaxTile& tile) const {
    const auto from = [](auto* data, int64_t offset) {
      return data == nullptr ? data : data + offset;
    };
    return {from(logits, tile.offset), from(soft_labels, tile.offset), from(softmax, tile.offset),
            from(loss, tile.first_item)};
  }
};

// Everything is read from the logits before softmax overwrites them.
template <typename T>
void SoftmaxLoss(const SoftmaxTile& tile, const Tensors<T>& at, const HardLabels& hard) {
  T max[kMaxItems];
  T sum[kMaxItems];
  T distance[kMaxItems];     // from the maximum down to the label
  T weight[kMaxItems] = {};  // of the label; 0 for an item that is ignored
  TileMax(tile, at.logits, max);
  if (hard.settings.soft) {
    TileDistance(tile, at.soft_labels, at.logits, max, distance);
    TileSum(tile, at.soft_labels, weight);
  } else {
    hard.ForItems(tile, [&](int64_t i, int64_t place) {
      weight[i] = 1;
      distance[i] = max[i] - at.logits[place];
    });
  }
  TileExp(tile, at.logits, max, at.softmax, sum);
  for (int64_t i = 0; i < tile.items; ++i) {
    // Of no classes the sum is 0, which has no logarithm.
    const bool counts = hard.settings.soft ? tile.classes > 0 : weight[i] != 0;
    if (at.loss != nullptr) at.loss[i] = counts ? weight[i] * std::log(sum[i]) + distance[i] : 0;
    sum[i] = 1 / sum[i];
  }
  if (at.softmax != nullptr) TileScale(tile, at.softmax, sum, at.softmax);
}

template <typename T>
void ProbabilityLoss(const SoftmaxTile& tile, const Tensors<T>& at, const HardLabels& hard) {
  T loss[kMaxItems] = {};
  if (hard.settings.soft) {
    ForValues(tile, [&](int64_t place, int64_t i) {
      const T weight = at.soft_labels[place];
      if (weight != 0) loss[i] -= weight * BoundedLog(at.logits[place]);
    });
  } else {
    hard.ForItems(tile, [&](int64_t i, int64_t place) { loss[i] = -BoundedLog(at.logits[place]); });
  }
  if (at.loss != nullptr) std::copy(loss, loss + tile.items, at.loss);
  if (at.softmax == nullptr || at.softmax == at.logits) return;
  ForValues(tile, [&](int64_t place, int64_t) { at.softmax[place] = at.logits[place]; });
}

// A tile of rows of which nobody reads the Softmax of those that are ignored.
template <typename T>
void LossOfCountedRows(const SoftmaxTile& tile, const Tensors<T>& all, const HardLabels& hard) {
  const auto counts = [&](int64_t row) { return hard.labels[row] != hard.settings.ignore_index; };
  ForPartsOfRows(tile, counts, [&](const SoftmaxTile& part, bool counted) {
    const Tensors<T> at = all.At(part);
    if (counted) return SoftmaxLoss(part, at, hard);
    if (at.loss != nullptr) std::fill_n(at.loss, part.items, T{0});
    if (at.softmax != nullptr) std::fill_n(at.softmax, part.items * part.classes, T{0});
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Settings prepared(context, context.Input("Logits"));
  const In<T> logits(context, "Logits");
  const In<> label(context, "Label");
  const Out<T> softmax(context, "Softmax");
  const Out<T> loss(context, "Loss");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Settings settings = prepared.For(logits.tensor(run));
    FirstBadIndex bad;
    const HardLabels hard{settings, LabelReader(label.tensor(run)), &bad};
    const Tensors<T> all{.logits = logits(run),
                         .soft_labels = settings.soft ? label.as<T>(run) : nullptr,
                         .softmax = softmax(run),
                         .loss = loss(run)};
    const AxisExtents& extents = settings.extents;
    ForTiles(extents.outer, extents.length, extents.inner, [&](const SoftmaxTile& tile) {
      if (settings.skips_ignored) return LossOfCountedRows(tile, all, hard);
      const Tensors<T> at = all.At(tile);
      settings.use_softmax ? SoftmaxLoss(tile, at, hard) : ProbabilityLoss(tile, at, hard);
    });
    ThrowIfFound(bad, "softmax_with_cross_entropy", hard.labels, extents.length,
                 settings.ignore_index);
  });
}

// Of one tile; dx may be y.
template <typename T>
struct Gradients {
  const T* y;
  const T* soft_labels;  // nullptr with hard ones, and without classes
  const T* loss;         // of each item
  T* dx;

  // Those of a tile.
  Gradients At(const SoftmaxTile& tile) const {
    return {y + tile.offset, soft_labels == nullptr ? nullptr : soft_labels + tile.offset,
            loss + tile.first_item, dx + tile.offset};
  }
};

template <typename T>
void SoftGradient(const SoftmaxTile& tile, const Gradients<T>& at, bool use_softmax) {
  if (!use_softmax) {
    return ForValues(tile, [&](int64_t place, int64_t i) {
      const T weight = at.soft_labels[place];
      at.dx[place] = weight == 0 ? T{0} : -at.loss[i] * weight / at.y[place];
    });
  }
  T weight[kMaxItems];
  TileSum(tile, at.soft_labels, weight);
  ForValues(tile, [&](int64_t place, int64_t i) {
    at.dx[place] = at.loss[i] * (at.y[place] * weight[i] - at.soft_labels[place]);
  });
}

template <typename T>
void HardGradient(const SoftmaxTile& tile, const Gradients<T>& at, const HardLabels& hard) {
  // What the label's own class gets, from its probability, which dx may overwrite.
  T at_label[kMaxItems] = {};
  T factor[kMaxItems] = {};
  const bool use_softmax = hard.settings.use_softmax;
  hard.ForItems(tile, [&](int64_t i, int64_t place) {
    factor[i] = use_softmax ? at.loss[i] : T{0};
    at_label[i] = use_softmax ? at.loss[i] * (at.y[place] - 1) : -at.loss[i] / at.y[place];
  });
  TileScale(tile, at.y, factor, at.dx);
  // A factor of 0 stands for no gradient, even where the probability is no number.
  for (int64_t i = 0; i < tile.items; ++i) {
    if (factor[i] != 0) continue;
    for (int64_t c = 0; c < tile.classes; ++c) {
      at.dx[i * tile.item_stride + c * tile.class_stride] = 0;
    }
  }
  hard.ForItems(tile, [&](int64_t i, int64_t place) { at.dx[place] = at_label[i]; });
}

// A tile of rows. One that is ignored, or whose loss has the gradient 0, gets zeros.
template <typename T>
void GradientOfCountedRows(const SoftmaxTile& tile, const Gradients<T>& all,
                           const HardLabels& hard) {
  const auto counts = [&](int64_t row) {
    const int64_t label = hard.labels[row];
    const bool has_gradient = all.loss[row] != 0 || !hard.settings.IsClass(label);
    return label != hard.settings.ignore_index && has_gradient;
  };
  ForPartsOfRows(tile, counts, [&](const SoftmaxTile& part, bool counted) {
    const Gradients<T> at = all.At(part);
    if (counted) return HardGradient(part, at, hard);
    std::fill_n(at.dx, part.items * part.classes, T{0});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const Settings prepared(context, context.Input("Softmax"));
  const In<T> softmax(context, "Softmax");
  const In<> label(context, "Label");
  const In<T> gradient(context, "Loss@GRAD");
  const Out<T> dx(context, "Logits@GRAD");
  const bool skips = !prepared.soft && prepared.use_softmax && prepared.extents.inner == 1;
  return MakeRowsKernel([=](const KernelContext& run) {
    const Settings settings = prepared.For(softmax.tensor(run));
    FirstBadIndex bad;
    const HardLabels hard{settings, LabelReader(label.tensor(run)), &bad};
    const Gradients<T> all{.y = softmax(run),
                           .soft_labels = settings.soft ? label.as<T>(run) : nullptr,
                           .loss = gradient(run),
                           .dx = dx(run)};
    const AxisExtents& extents = settings.extents;
    ForTiles(extents.outer, extents.length, extents.inner, [&](const SoftmaxTile& tile) {
      if (skips) return GradientOfCountedRows(tile, all, hard);
      const Gradients<T> at = all.At(tile);
      settings.soft ? SoftGradient(tile, at, settings.use_softmax) : HardGradient(tile, at, hard);
    });
    ThrowIfFound(bad, "softmax_with_cross_entropy_grad", hard.labels, extents.length,
                 settings.ignore_index);
  });
}

}  // namespace

void RegisterSoftmaxWithCrossEntropy(OpRegistry& registry) {
  OpDef def = {
      .type = "softmax_with_cross_entropy",
      .doc =
          "Softmax = softmax(Logits) along `axis`; Loss = -log Softmax[label], or with soft "
          "labels -sum of label * log Softmax. Fluid's softmax_with_cross_entropy.",
      .inputs = {{.name = "Logits", .doc = "Scores, with the classes along `axis`."},
                 {.name = "Label",
                  .doc = "Classes, int64 or int32, of Logits' shape with 1 at `axis`; soft: of "
                         "Logits' shape.",
                  .checks_data = true}},
      .outputs = {{.name = "Softmax", .doc = "Of Logits' shape.", .dispensable = true},
                  {.name = "Loss", .doc = "Of Logits' shape with 1 at `axis`."}},
      .attrs = {{.name = "soft_label",
                 .type = AttrType::kBool,
                 .default_value = Attribute(false),
                 .doc = "Label holds a weight per class instead of a class."},
                {.name = "use_softmax",
                 .type = AttrType::kBool,
                 .default_value = Attribute(true),
                 .doc = "False: Logits are probabilities already."},
                {.name = "numeric_stable_mode",
                 .type = AttrType::kBool,
                 .default_value = Attribute(true),
                 .doc = "Subtract the maximum first. Skiff always does."},
                {.name = "ignore_index",
                 .type = AttrType::kInt,
                 .default_value = Attribute(int32_t{-100}),
                 .doc = "Items of this (hard) label have loss and gradient 0."},
                {.name = "skip_ignored",
                 .type = AttrType::kBool,
                 .default_value = Attribute(false),
                 .doc = "Nobody reads the Softmax of ignored items: it may be 0. The pass "
                        "fuse_softmax_loss sets this."},
                {.name = "axis",
                 .type = AttrType::kInt,
                 .default_value = Attribute(int32_t{-1}),
                 .doc = "The axis of the classes; negative ones count from the back."}},
      .infer = Infer,
      .in_place = {{"Logits", "Softmax"}}};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"Label", "Softmax", "Loss@GRAD"}, {"Logits@GRAD"});
  grad.doc =
      "The gradient of softmax_with_cross_entropy: dLogits = dLoss * (Softmax * "
      "sum of label - label).";
  grad.infer = InferGrad;
  grad.in_place = {{"Softmax", "Logits@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "softmax_with_cross_entropy",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "softmax_with_cross_entropy_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
