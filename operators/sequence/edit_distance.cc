// edit_distance: the fewest ids to insert, to delete and to replace that make Refs[i] of Hyps[i].
//
//   d[m, n] = min(d[m - 1, n] + 1, d[m, n - 1] + 1, d[m - 1, n - 1] + (Hyps[m] ≠ Refs[n]))
//
// Out[i] is the distance, with `normalized` divided by the ids of Refs[i]; SequenceNum is the
// number of pairs. Both inputs are ragged, or padded with lengths. Source: Fluid's edit_distance
// (V. I. Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals",
// 1966).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// Checks an input and returns the number of sequences.
int64_t CheckedSequences(const OpContext& context, std::string_view slot, std::string_view length) {
  const TensorMeta& ids = context.Input(slot);
  const bool is_ragged = !context.HasInput(length);
  const bool is_column = ids.shape.rank() == 2 && (ids.shape[1] == 1 || ids.shape[1] < 0);
  SKIFF_ENFORCE(is_ragged ? is_column : ids.shape.rank() == 2, kInvalidArgument,
                "edit_distance: ", slot, " is of shape ", ids.shape, ", expected ",
                is_ragged ? "[rows, 1] if there are no lengths" : "[sequences, ids] with lengths");
  SKIFF_ENFORCE(ids.dtype == context.Input("Hyps").dtype, kInvalidArgument, "edit_distance: ", slot,
                " is ", ids.dtype, ", expected the dtype of Hyps, ", context.Input("Hyps").dtype);
  if (is_ragged) return OneLevelSequenceCount(context, slot);
  Shape expected = {ids.shape[0]};
  if (context.Input(length).shape.rank() == 2) expected.Append(1);
  CheckInputLike(context, length, expected, DType::kInt64);
  return ids.shape[0];
}

void Infer(OpContext& context) {
  SKIFF_ENFORCE(
      context.HasInput("HypsLength") == context.HasInput("RefsLength"), kInvalidArgument,
      "edit_distance: only one of HypsLength and RefsLength is there, expected both or none");
  const int64_t pairs = MergeDims(CheckedSequences(context, "Hyps", "HypsLength"),
                                  CheckedSequences(context, "Refs", "RefsLength"),
                                  "edit_distance: sequences of Hyps and Refs");
  context.SetOutput("Out", {pairs, 1}, DType::kFloat32);
  context.SetOutput("SequenceNum", {1}, DType::kInt64);
}

// The sequences of one input in a run.
template <typename T>
class IdSequences {
 public:
  IdSequences(const OpContext& context, std::string_view slot, std::string_view length)
      : slot_(slot), ids_(context, slot), length_(context, length) {}

  RowRange RowsOf(const KernelContext& run, int64_t i) const {
    if (!length_.is_there()) return SequenceRows(ids_.tensor(run))[i];
    const int64_t begin = i * ids_.shape(run)[1];
    return {begin, begin + length_(run)[i]};
  }
  const T* data(const KernelContext& run) const { return ids_.template as<T>(run); }
  int64_t pairs(const KernelContext& run) const {
    return length_.is_there() ? ids_.shape(run)[0] : SequenceRows(ids_.tensor(run)).size();
  }
  int64_t count(const KernelContext& run) const { return ids_.count(run); }

  // Throws Error (kOutOfRange) for a length that doesn't fit.
  void CheckLengths(const KernelContext& run) const {
    if (!length_.is_there()) return;
    const int64_t most = ids_.shape(run)[1];
    for (int64_t i = 0; i < length_.count(run); ++i) {
      const int64_t length = length_(run)[i];
      SKIFF_ENFORCE(length >= 0 && length <= most, kOutOfRange, "edit_distance: ", slot_, "Length[",
                    i, "] = ", length, ", expected 0 to dim 1 of ", slot_, ", ", most);
    }
  }

 private:
  std::string slot_;
  In<> ids_;
  In<int64_t> length_;
};

// Returns the distance. `row` has room for a number more than there are refs.
template <typename T>
int64_t Distance(const T* hyps, int64_t hyp_count, const T* refs, int64_t ref_count, int64_t* row) {
  std::iota(row, row + ref_count + 1, int64_t{0});
  for (int64_t m = 0; m < hyp_count; ++m) {
    int64_t diagonal = row[0];
    row[0] = m + 1;
    for (int64_t n = 0; n < ref_count; ++n) {
      const int64_t replaced = diagonal + (hyps[m] == refs[n] ? 0 : 1);
      diagonal = row[n + 1];
      row[n + 1] = std::min({replaced, row[n] + 1, row[n + 1] + 1});
    }
  }
  return row[ref_count];
}

void CheckIsDivisor(int64_t i, int64_t refs) {
  SKIFF_ENFORCE(refs > 0, kOutOfRange, "edit_distance: sequence ", i,
                " of Refs has no ids, expected at least one to divide by (normalized)");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int64_t room = context.Input("Refs").shape.element_count() + context.Output("Out").shape[0];
  const int rows = context.RequestWorkspace(
      MultiplyCounts(std::max<int64_t>(room, 1), static_cast<int64_t>(sizeof(int64_t))));
  return MakeRowsKernel(
      [rows, normalized = context.Attr<bool>("normalized"),
       hyps = IdSequences<T>(context, "Hyps", "HypsLength"),
       refs = IdSequences<T>(context, "Refs", "RefsLength"), out = Out<float>(context, "Out"),
       pairs_out = Out<int64_t>(context, "SequenceNum")](const KernelContext& run) {
        hyps.CheckLengths(run);
        refs.CheckLengths(run);
        const int64_t pairs = hyps.pairs(run);
        if (pairs_out.is_there()) *pairs_out(run) = pairs;
        for (int64_t i = 0; i < pairs && normalized; ++i)
          CheckIsDivisor(i, refs.RowsOf(run, i).count());
        auto* const scratch = static_cast<int64_t*>(run.workspace(rows));
        const int64_t grain = SequenceGrain(pairs, hyps.count(run) * 16);
        ParallelFor(pairs, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const RowRange hyp = hyps.RowsOf(run, i);
            const RowRange ref = refs.RowsOf(run, i);
            const int64_t distance =
                Distance(hyps.data(run) + hyp.begin, hyp.count(), refs.data(run) + ref.begin,
                         ref.count(), scratch + ref.begin + i);
            const auto divisor = static_cast<float>(normalized ? ref.count() : 1);
            out(run)[i] = static_cast<float>(distance) / divisor;
          }
        });
      });
}

SlotDef IdsSlot(StaticText name) {
  return {.name = name,
          .doc = "Ids, int32 or int64. Ragged, [rows, 1]; with lengths [sequences, ids]."};
}
SlotDef LengthSlot(StaticText name) {
  return {.name = name,
          .doc = "[sequences] or [sequences, 1], int64: the ids of each.",
          .dispensable = true,
          .checks_data = true};
}

}  // namespace

void RegisterEditDistance(OpRegistry& registry) {
  OpDef def;
  def.type = "edit_distance";
  def.doc = "The fewest insertions, deletions and replacements that make Refs[i] of Hyps[i].";
  def.inputs = {IdsSlot("Hyps"), IdsSlot("Refs"), LengthSlot("HypsLength"),
                LengthSlot("RefsLength")};
  // With `normalized`, a sequence without ids is refused.
  def.inputs[1].checks_data = true;
  def.outputs = {{.name = "SequenceNum", .doc = "[1], int64: the number of pairs."},
                 {.name = "Out", .doc = "[sequences, 1], float32: the distances."}};
  def.attrs = {{.name = "normalized",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Divides each distance by the number of ids of Refs."}};
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "ids have no gradient";
  def.is_on_host = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<int32_t, int64_t>(
      "edit_distance", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
