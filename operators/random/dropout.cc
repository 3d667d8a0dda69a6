// dropout: in training, Out[i] = X[i] * Mask[i] * scale, where Mask[i] is 0 with probability p.
//
//                        training            is_test
//   upscale_in_train     X * Mask / (1 - p)  X
//   downgrade_in_infer   X * Mask            X * (1 - p)
//
// Source: Fluid's dropout (Srivastava et al. 2014). Gradient: X@GRAD is Out@GRAD times the factor
// of the same cell of the table. Fluid's Mask is uint8; it holds ones where is_test is set.
//
// Which elements are dropped: operators/common/dropout_settings.h. A Seed tensor with a value other
// than 0 goes before the attribute.
//
// X and Out may be channel-blocked in float32; Mask never is. Elements are numbered in the plain
// order whatever the layout, so the same ones are dropped.
#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "operators/common/cpu/dropout_ranges.h"
#include "operators/common/dropout_settings.h"
#include "operators/common/input_checks.h"
#include "operators/random/kernels/blocked_tiles.h"
#include "operators/random/kernels/random_tensor.h"

namespace skiff {
namespace {

constexpr int64_t kGrain = 8192;  // elements, a multiple of the four words of a block

void InferDropout(OpContext& context) {
  context.SetOutputLike("Out", "X");
  context.SetOutput("Mask", context.Input("X").shape, DType::kUint8);
  if (!context.HasInput("Seed")) return;
  const TensorMeta& seed = context.Input("Seed");
  SKIFF_ENFORCE(seed.dtype == DType::kInt32 || seed.dtype == DType::kInt64, kInvalidArgument,
                "dropout: Seed is ", seed.dtype, ", expected int32 or int64");
  CheckOneElement(context, "Seed");
}

template <typename T>
void ScaleElements(const T* from, T scale, int64_t count, T* to) {
  ParallelFor(count, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = from[i] * scale;
  });
}

void FillMask(uint8_t value, int64_t count, uint8_t* mask) {
  if (mask != nullptr && count > 0) std::memset(mask, value, static_cast<size_t>(count));
}

// The masks of elements [first, first + count), which may begin anywhere in the stream.
void DrawMask(const DropoutRule& rule, int64_t first, int64_t count, uint8_t* mask) {
  constexpr int64_t kBatch = 1024;
  uint32_t words[kBatch + 8];
  for (int64_t done = 0; done < count; done += kBatch) {
    const int64_t batch = std::min(kBatch, count - done);
    const int64_t block = (first + done) / 4;
    const int64_t skipped = (first + done) % 4;
    PhiloxWords(rule.key, static_cast<uint64_t>(block), (skipped + batch + 3) / 4, words);
    for (int64_t i = 0; i < batch; ++i) mask[done + i] = words[skipped + i] >= rule.threshold;
  }
}

// A tile of a blocked X. `mask` (all of it; nullptr: nobody reads it) is plain.
void DropoutTile(const BlockedTile& tile, const DropoutRule& rule, const float* x, float* out,
                 uint8_t* mask) {
  uint8_t drawn[BlockedTile::kMaxElements];
  uint8_t kept[BlockedTile::kMaxElements];
  uint8_t* rows = mask == nullptr ? drawn : mask + tile.plain;
  const int64_t stride = mask == nullptr ? tile.positions : tile.channel_stride;
  if (tile.positions == tile.channel_stride) {
    // The channels follow each other in the plain order.
    DrawMask(rule, tile.plain, tile.channels * tile.positions, rows);
  } else {
    for (int64_t c = 0; c < tile.channels; ++c)
      DrawMask(rule, tile.plain + c * tile.channel_stride, tile.positions, rows + c * stride);
  }
  InterleaveBytes(tile, rows, stride, kept);
  MaskedScaleFloat(kept, x + tile.blocked, rule.scale, tile.elements(), out + tile.blocked);
}

// The tiles of a tensor, if it is blocked.
std::optional<BlockedTiles> TilesOf(const TensorMeta& meta) {
  if (meta.layout.is_plain()) return std::nullopt;
  return BlockedTiles(meta.shape, meta.layout);
}

template <typename T>
class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(const PrepareContext& context)
      : settings_(DropoutSettingsOf(context)),
        x_(context, "X"),
        seed_input_(context, "Seed"),
        out_(context, "Out"),
        mask_(context, "Mask"),
        tiles_(TilesOf(context.Input("X"))) {}

  bool AcceptsFewerRows() const override { return !tiles_; }

  void Run(const KernelContext& run) override {
    const int64_t storage_count = StorageElements(x_.shape(run), x_.tensor(run).layout());
    const T* x = x_(run);
    T* out = out_(run);
    uint8_t* mask = mask_(run);
    if (settings_.draws()) {
      Draw(run, x, out, mask);
      return;
    }
    FillMask(settings_.drops_all() ? 0 : 1, x_.count(run), mask);
    if (settings_.drops_all()) {
      std::fill(out, out + storage_count, T{0});
    } else {
      ScaleElements(x, static_cast<T>(settings_.scale()), storage_count, out);
    }
  }

 private:
  void Draw(const KernelContext& run, const T* x, T* out, uint8_t* mask) const {
    const DropoutRule rule{KeyOf(run), settings_.threshold(),
                           static_cast<float>(settings_.scale())};
    if constexpr (std::is_same_v<T, float>) {
      if (tiles_) {
        tiles_->ForEach([&](const BlockedTile& tile) { DropoutTile(tile, rule, x, out, mask); });
        return;
      }
    }
    ParallelFor(x_.count(run), kGrain, [&](int64_t begin, int64_t end) {
      DropoutRange(rule, settings_.scale(), begin, end - begin, x + begin, out + begin,
                   mask == nullptr ? nullptr : mask + begin);
    });
  }

  RandomKey KeyOf(const KernelContext& run) const {
    const int64_t given = seed_input_.is_there() ? SeedValue(seed_input_.tensor(run)) : 0;
    if (given == 0) return settings_.KeyOf(run);
    return {static_cast<uint64_t>(given), 0, run.random_key().step};
  }

  static int64_t SeedValue(const Tensor& seed) {
    return seed.dtype() == DType::kInt32 ? seed.Item<int32_t>() : seed.Item<int64_t>();
  }

  DropoutSettings settings_;
  In<T> x_;
  In<> seed_input_;
  Out<T> out_;
  Out<uint8_t> mask_;
  std::optional<BlockedTiles> tiles_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareDropout(PrepareContext& context) {
  return std::make_unique<DropoutKernel<T>>(context);
}

void MaskedScaleTiles(const BlockedTiles& tiles, const uint8_t* mask, const float* grad,
                      float scale, float* out) {
  tiles.ForEach([=](const BlockedTile& tile) {
    uint8_t kept[BlockedTile::kMaxElements];
    InterleaveBytes(tile, mask + tile.plain, tile.channel_stride, kept);
    MaskedScaleFloat(kept, grad + tile.blocked, scale, tile.elements(), out + tile.blocked);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareDropoutGrad(PrepareContext& context) {
  const DropoutSettings settings = DropoutSettingsOf(context);
  const In<uint8_t> mask(context, "Mask");
  const TensorMeta& gradient = context.Input("Out@GRAD");
  const auto run_kernel = [settings, mask, grad = In<T>(context, "Out@GRAD"),
                           out = Out<T>(context, "X@GRAD"),
                           tiles = TilesOf(gradient)](const KernelContext& run) {
    if (!out.is_there()) return;
    const int64_t count = StorageElements(grad.shape(run), grad.tensor(run).layout());
    const T* from = grad(run);
    T* to = out(run);
    const T scale = static_cast<T>(settings.scale());
    if (settings.is_test) return ScaleElements(from, scale, count, to);
    const uint8_t* kept = mask(run);
    if constexpr (std::is_same_v<T, float>) {
      if (tiles) return MaskedScaleTiles(*tiles, kept, from, scale, to);
    }
    ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
      MaskedScaleRange(kept + begin, from + begin, scale, end - begin, to + begin);
    });
  };
  if (gradient.layout.is_plain()) return MakeRowsKernel(run_kernel);
  return MakeKernel(run_kernel);
}

void InferDropoutGrad(OpContext& context) {
  const TensorMeta& grad = context.Input("Out@GRAD");
  SKIFF_ENFORCE(context.HasInput("Mask") || DropoutSettingsOf(context).is_test, kInvalidArgument,
                context.op().type, ": Mask is missing, expected that of the forward op");
  if (context.HasInput("Mask")) CheckInputLike(context, "Mask", grad.shape, DType::kUint8);
  context.SetOutputLike("X@GRAD", "Out@GRAD");
}

// The op may run blocked from slot `from` to slot `to`.
void AllowBlocked(StaticText from, StaticText to, OpDef* def) {
  def->layout_rule = LayoutRule::kSame;
  def->layout_slots = {from, to};
  def->zero_preserving = true;
}

// Everything plain, or blocked where AllowBlocked says.
bool AcceptsFloat(const OpContext& context) {
  if (AllPlain(context)) return true;
  const StaticText from = context.def().layout_slots[0];
  const StaticText to = context.def().layout_slots[1];
  if (!context.HasOutput(to)) return false;
  const Layout layout = context.Input(from).layout;
  if (layout != context.Output(to).layout || layout.channel_block > BlockedTile::kMaxBlock)
    return false;
  const auto count_blocked = [](std::span<const TensorMeta> metas) {
    return std::ranges::count_if(metas, [](const TensorMeta& m) { return !m.layout.is_plain(); });
  };
  return count_blocked(context.inputs()) == 1 && count_blocked(context.outputs()) == 1;
}

void AddKernels(OpRegistry& registry, std::string_view type, const KernelFactory& prepare_float,
                const KernelFactory& prepare_double) {
  registry.AddKernel(type, {.prepare = prepare_float, .accepts = AcceptsFloat});
  registry.AddKernel(type, {.dtype = DType::kFloat64, .prepare = prepare_double});
}

}  // namespace

void RegisterDropout(OpRegistry& registry) {
  OpDef def;
  def.type = "dropout";
  def.doc =
      "Training: Out = X * Mask, divided by 1 - p with upscale_in_train; Mask[i] is 0 with "
      "probability p. is_test: Out = X, times 1 - p with downgrade_in_infer.";
  def.inputs = {{.name = "X", .doc = "Any tensor."},
                {.name = "Seed", .doc = "One integer: the seed, unless 0.", .dispensable = true}};
  def.outputs = {{.name = "Out", .doc = "X with elements dropped."},
                 {.name = "Mask",
                  .doc = "uint8: 1 where X was kept, 0 where it was dropped.",
                  .dispensable = true,
                  .intermediate = true}};
  def.attrs = DropoutAttrs();
  def.infer = InferDropout;
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}};
  def.elementwise = true;
  def.random = true;
  AllowBlocked("X", "Out", &def);

  OpDef grad = GradientOf(&def, {Optional("Mask"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc =
      "X@GRAD[i] = Out@GRAD[i] * Mask[i] * scale with the scale of dropout; where is_test is "
      "set, Out@GRAD[i] times the factor of evaluation, and Mask isn't read.";
  grad.infer = InferDropoutGrad;
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  grad.elementwise = true;
  AllowBlocked("Out@GRAD", "X@GRAD", &grad);
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  AddKernels(registry, "dropout", PrepareDropout<float>, PrepareDropout<double>);
  AddKernels(registry, "dropout_grad", PrepareDropoutGrad<float>, PrepareDropoutGrad<double>);
}

}  // namespace skiff
