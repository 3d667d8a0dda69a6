// sequence_enumerate: Out[r] = [X[r], X[r + 1], …, X[r + win_size - 1]], with pad_value beyond the
// end of r's sequence. Source: Fluid's sequence_enumerate.
#include <algorithm>
#include <string>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.shape.rank() == 2 && (x.shape[1] == 1 || x.shape[1] < 0), kInvalidArgument,
                "sequence_enumerate: X has shape ", x.shape, ", expected [rows, 1]");
  OneLevelSequenceCount(context, "X");
  context.SetOutput("Out", {x.shape[0], context.IntAttr("win_size")}, x.dtype);
  context.ShareLoD("Out", "X");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel(
      [window = context.IntAttr("win_size"), pad = static_cast<T>(context.IntAttr("pad_value")),
       x = In<T>(context, "X"), out = Out<T>(context, "Out")](const KernelContext& run) {
        const SequenceRows sequences(x.tensor(run));
        const T* from = x(run);
        T* to = out(run);
        const int64_t grain = SequenceGrain(sequences.size(), out.count(run));
        ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const RowRange rows = sequences[i];
            for (int64_t row = rows.begin; row < rows.end; ++row) {
              const int64_t count = std::min(window, rows.end - row);
              T* rest = std::copy_n(from + row, count, to + row * window);
              std::fill_n(rest, window - count, pad);
            }
          }
        });
      });
}

}  // namespace

void RegisterSequenceEnumerate(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_enumerate";
  def.doc = "Each row with the win_size - 1 rows after it in its sequence, side by side.";
  def.inputs = {{.name = "X", .doc = "Ragged, one level, [rows, 1]: ids."}};
  def.outputs = {{.name = "Out", .doc = "[rows, win_size], with the LoD of X."}};
  def.attrs = {{.name = "win_size",
                .type = AttrType::kInt,
                .default_value = std::nullopt,
                .doc = "The width of Out.",
                .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 2; },
                .expected = "at least 2"},
               {.name = "pad_value",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "Stands for rows beyond the end of a sequence."}};
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "ids have no gradient";
  registry.Add(std::move(def));
  registry.AddCpuKernels<int32_t, int64_t>(
      "sequence_enumerate",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
