// sequence_erase: the sequences of X without the tokens listed.
//
// The rows of Out depend on data. Source: Fluid's sequence_erase.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.shape.rank() == 2 && (x.shape[1] == 1 || x.shape[1] < 0), kInvalidArgument,
                "sequence_erase: X has shape ", x.shape, ", expected [rows, 1]");
  SequenceCount(context, "X");
  context.SetOutput("Out", {-1, 1}, x.dtype);
  DeclareLoDLevel(context, "Out", x.lod_level);
}

// Returns X's LoD with what `keeps` leaves of each sequence of the lowest level.
template <typename Keeps>
LoD LoDOfKept(const Tensor& x, int64_t grain, const Keeps& keeps) {
  const SequenceRows sequences(x);
  LoD lod = x.lod();
  std::vector<uint64_t>& offsets = lod.back();
  ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const RowRange rows = sequences[i];
      uint64_t kept = 0;
      for (int64_t row = rows.begin; row < rows.end; ++row) kept += keeps(row) ? 1 : 0;
      offsets[static_cast<size_t>(i) + 1] = kept;
    }
  });
  for (size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  return lod;
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  std::vector<int64_t> tokens = context.IntsAttr("tokens");
  std::ranges::sort(tokens);
  return MakeRowsKernel([tokens = std::move(tokens), x = In<>(context, "X"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const Tensor& ids = x.tensor(run);
    const T* from = ids.data<T>();
    const SequenceRows sequences(ids);
    const int64_t grain = SequenceGrain(sequences.size(), ids.element_count());
    const auto keeps = [&](int64_t row) {
      return !std::ranges::binary_search(tokens, int64_t{from[row]});
    };
    LoD lod = LoDOfKept(ids, grain, keeps);
    Tensor kept(Shape{static_cast<int64_t>(lod.back().back()), 1}, kDTypeOf<T>);
    T* to = kept.data<T>();
    ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const RowRange rows = sequences[i];
        T* next = to + lod.back()[static_cast<size_t>(i)];
        for (int64_t row = rows.begin; row < rows.end; ++row) {
          if (keeps(row)) *next++ = from[row];
        }
      }
    });
    kept.set_lod(std::move(lod));
    out.tensor(run) = std::move(kept);
  });
}

}  // namespace

void RegisterSequenceErase(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_erase";
  def.doc = "The sequences of X without these tokens.";
  def.inputs = {{.name = "X", .doc = "Ragged, [rows, 1]: ids."}};
  def.outputs = {{.name = "Out", .doc = "Ragged like X, [rows left, 1]."}};
  def.attrs = {{.name = "tokens",
                .type = AttrType::kInts,
                .default_value = std::nullopt,
                .doc = "The ids that are left out."}};
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "ids have no gradient";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<int32_t, int64_t>(
      "sequence_erase", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
