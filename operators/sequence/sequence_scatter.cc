// sequence_scatter: adds numbers to elements of the rows of X; sequence i says which, in row i.
//
//   Out = X;  Out[i, Ids[r]] += Updates[r] for the rows r of sequence i of Ids
//
// An id counts the elements of a row of X, whatever its dims. Sums of integers wrap around. Source:
// Fluid's sequence_scatter.
//
// Gradient: X@GRAD = Out@GRAD; Updates@GRAD[r] = Out@GRAD[i, Ids[r]].
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/common/integer.h"
#include "operators/sequence/kernels/copy_elements.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

void CheckOneNumberARow(const OpContext& context, std::string_view slot) {
  const int64_t width = RowWidth(context, slot);
  SKIFF_ENFORCE(width == 1 || width < 0, kInvalidArgument, context.op().type, ": ", slot,
                " has shape ", context.Input(slot).shape, ", expected one number in each row");
}

// Checks Ids and Updates. `x_slot` has the shape and dtype of X.
void CheckArguments(const OpContext& context, std::string_view x_slot) {
  const std::string& op = context.op().type;
  CheckOneNumberARow(context, "Ids");
  CheckOneNumberARow(context, "Updates");
  const Shape& ids = context.Input("Ids").shape;
  const Shape& updates = context.Input("Updates").shape;
  CheckInputLike(context, "Ids", ids, DType::kInt64);
  CheckInputLike(context, "Updates", updates, context.Input(x_slot).dtype);
  MergeDims(ids[0], updates[0], op + ": the rows of Ids and of Updates");
  OneLevelSequenceCount(context, "Updates");
  const int64_t sequences = OneLevelSequenceCount(context, "Ids");
  RowWidth(context, x_slot);
  const int64_t rows = context.Input(x_slot).shape[0];
  SKIFF_ENFORCE(rows < 0 || sequences <= rows, kInvalidArgument, op, ": Ids has ", sequences,
                " sequences, expected at most one for each row of ", x_slot, ", which has ", rows);
}

// Ids and Updates are sequences of the same lengths.
void CheckSameLoD(const LoD& ids, const LoD& updates) {
  SKIFF_ENFORCE(ids == updates, kInvalidArgument, "sequence_scatter: Updates has the LoD [",
                Join(updates[0], ", "), "], expected that of Ids, [", Join(ids[0], ", "), "]");
}

void Infer(OpContext& context) {
  CheckArguments(context, "X");
  context.SetOutput("Out", context.Input("X").shape, context.Input("X").dtype);
  context.DependOnLoD("Out", {"Ids", "Updates"}, [](std::span<const LoD* const> parents, LoD* lod) {
    CheckSameLoD(*parents[0], *parents[1]);
    *lod = *parents[0];
  });
}

void InferGrad(OpContext& context) {
  CheckArguments(context, "Out@GRAD");
  context.SetOutputLike("X@GRAD", "Out@GRAD");
  context.SetOutputLike("Updates@GRAD", "Updates");
}

void CheckIds(const std::string& op, std::span<const int64_t> ids, int64_t width) {
  for (size_t i = 0; i < ids.size(); ++i) {
    SKIFF_ENFORCE(ids[i] >= 0 && ids[i] < width, kOutOfRange, op, ": Ids[", i, "] = ", ids[i],
                  ", expected an element of a row of X, 0 to ", width - 1);
  }
}

// Calls body(r, element of X that Ids[r] names) for all rows of Ids, those of a sequence in order.
template <typename Body>
void ForEachId(const Tensor& ids, int64_t width, const Body& body) {
  const SequenceRows sequences(ids);
  const int64_t* id = ids.data<int64_t>();
  const int64_t grain = SequenceGrain(sequences.size(), ids.element_count());
  ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const RowRange rows = sequences[i];
      for (int64_t r = rows.begin; r < rows.end; ++r) body(r, i * width + id[r]);
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, width = RowWidth(context, "X"),
                         x = In<T>(context, "X"), ids = In<>(context, "Ids"),
                         updates = In<T>(context, "Updates"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    // Before anything is written: in place, an Error leaves X as it was.
    CheckIds(op, ids.tensor(run).values<int64_t>(), width);
    const T* from = updates(run);
    T* to = out(run);
    CopyElements(x(run), x.count(run), to);
    ForEachId(ids.tensor(run), width, [=](int64_t row, int64_t element) {
      to[element] = WrappingAdd(to[element], from[row]);
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, width = RowWidth(context, "Out@GRAD"),
                         ids = In<>(context, "Ids"), out_grad = In<T>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD"),
                         updates_grad = Out<T>(context, "Updates@GRAD")](const KernelContext& run) {
    const T* from = out_grad(run);
    CheckIds(op, ids.tensor(run).values<int64_t>(), width);
    if (updates_grad.is_there()) {
      ForEachId(ids.tensor(run), width, [=, to = updates_grad(run)](int64_t row, int64_t element) {
        to[row] = from[element];
      });
    }
    if (x_grad.is_there()) CopyElements(from, out_grad.count(run), x_grad(run));
  });
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef grad =
      GradientOf(forward, {"Ids", ForShape("Updates"), "Out@GRAD"}, {"X@GRAD", "Updates@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD; Updates@GRAD = the elements of it that Ids names.";
  grad.infer = InferGrad;
  // Nothing ties the dims of Out@GRAD to those of the X that sequence_scatter had.
  grad.data_checked_by = {};
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "sequence_scatter_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace

void RegisterSequenceScatter(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_scatter";
  def.doc = "X plus Updates, in row i at the elements that sequence i of Ids names.";
  def.inputs = {
      {.name = "X", .doc = "[rows, …]."},
      {.name = "Ids",
       .doc = "Ragged, one level, [n, 1], int64: a sequence for each row of X, or for the "
              "first rows.",
       .checks_data = true},
      {.name = "Updates", .doc = "[n, 1], with the LoD of Ids."}};
  def.outputs = {{.name = "Out", .doc = "X's shape, not ragged."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "sequence_scatter", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
