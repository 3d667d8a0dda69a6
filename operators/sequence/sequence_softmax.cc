// sequence_softmax: softmax over the rows of each sequence, whose width is 1.
//
//   Out_r = exp(X_r - max X) / sum of exp(X_s - max X), s over the rows of r's sequence
//
// Source: Fluid's sequence_softmax. Gradient: X@GRAD_r = (Out@GRAD_r - sum of Out@GRAD_s * Out_s) *
// Out_r.
#include <string>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/softmax_tiles.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

void CheckX(const OpContext& context) {
  const int64_t width = RowWidth(context, "X");
  SKIFF_ENFORCE(width == 1 || width < 0, kInvalidArgument, context.op().type, ": X has shape ",
                context.Input("X").shape, ", expected one number in each row");
  SequenceCount(context, "X");
}

void Infer(OpContext& context) {
  CheckX(context);
  context.SetOutputLike("Out", "X");
}

void InferGrad(OpContext& context) {
  CheckX(context);
  const TensorMeta& x = context.Input("X");
  CheckInputLike(context, "Out", x.shape, x.dtype);
  CheckInputLike(context, "Out@GRAD", x.shape, x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

// Calls body(tile) for each sequence that has rows: one item with a class for each row.
template <typename Body>
void ForSequenceTiles(const Tensor& x, const Body& body) {
  const SequenceRows sequences(x);
  const int64_t grain = SequenceGrain(sequences.size(), x.element_count());
  ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const RowRange rows = sequences[i];
      if (rows.count() == 0) continue;
      SoftmaxTile tile;
      tile.items = 1;
      tile.classes = rows.count();
      tile.item_stride = rows.count();
      tile.class_stride = 1;
      tile.offset = rows.begin;
      body(tile);
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel(
      [x = In<T>(context, "X"), out = Out<T>(context, "Out")](const KernelContext& run) {
        ForSequenceTiles(x.tensor(run), [=, from = x(run), to = out(run)](const SoftmaxTile& tile) {
          T max = 0;
          T sum = 0;
          TileMax(tile, from + tile.offset, &max);
          TileExp(tile, from + tile.offset, &max, to + tile.offset, &sum);
          const T factor = 1 / sum;
          TileScale(tile, to + tile.offset, &factor, to + tile.offset);
        });
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([x = In<>(context, "X"), out = In<T>(context, "Out"),
                         out_grad = In<T>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    ForSequenceTiles(x.tensor(run), [=, y = out(run), gradient = out_grad(run),
                                     to = x_grad(run)](const SoftmaxTile& tile) {
      T dot = 0;
      TileDot(tile, y + tile.offset, gradient + tile.offset, &dot);
      TileSoftmaxGrad(tile, y + tile.offset, gradient + tile.offset, &dot, to + tile.offset);
    });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "use_cudnn",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Ignored: which kernel Fluid runs on a GPU."}};
}

}  // namespace

void RegisterSequenceSoftmax(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_softmax";
  def.doc = "Softmax over the rows of each sequence.";
  def.inputs = {{.name = "X", .doc = "Ragged, [rows] or [rows, 1]."}};
  def.outputs = {{.name = "Out", .doc = "Like X: probabilities."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.in_place = {{"X", "Out"}};
  OpDef grad = GradientOf(&def, {ForShape("X"), "Out", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = (Out@GRAD - sum of Out@GRAD * Out over the sequence) * Out.";
  grad.infer = InferGrad;
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "sequence_softmax", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "sequence_softmax_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
