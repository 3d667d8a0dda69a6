// sequence_reverse: the rows of each sequence in reverse order. Source: Fluid's sequence_reverse.
//
// Gradient: the rows of Y@GRAD in reverse order. Fluid uses sequence_reverse for it, which needs
// the LoD of Y@GRAD; sequence_reverse_grad reads that of X, which is always there.
#include <algorithm>
#include <string>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  RowWidth(context, "X");
  OneLevelSequenceCount(context, "X");
  context.SetOutputLike("Y", "X");
}

// Reverses the rows of argument `from` by the LoD of X.
template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context, const In<T>& from, const Out<T>& to) {
  return MakeRowsKernel([=, width = RowWidth(context, "X"),
                         x = In<>(context, "X")](const KernelContext& run) {
    const SequenceRows sequences(x.tensor(run));
    const int64_t grain = SequenceGrain(sequences.size(), from.count(run));
    ParallelFor(
        sequences.size(), grain, [&, in = from(run), out = to(run)](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const RowRange rows = sequences[i];
            for (int64_t k = 0; k < rows.count(); ++k) {
              std::copy_n(in + (rows.begin + k) * width, width, out + (rows.end - 1 - k) * width);
            }
          }
        });
  });
}

}  // namespace

void RegisterSequenceReverse(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_reverse";
  def.doc = "The rows of each sequence of X in reverse order.";
  def.inputs = {{.name = "X", .doc = "Ragged, one level."}};
  def.outputs = {{.name = "Y", .doc = "Like X."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Y@GRAD"}, {"X@GRAD"});
  grad.doc = "The rows of each sequence of Y@GRAD in reverse order.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "sequence_reverse", []<typename T>(PrepareContext& context) {
        return Prepare<T>(context, {context, "X"}, {context, "Y"});
      });
  registry.AddCpuKernels<float, double>(
      "sequence_reverse_grad", []<typename T>(PrepareContext& context) {
        return Prepare<T>(context, {context, "Y@GRAD"}, {context, "X@GRAD"});
      });
}

}  // namespace skiff
