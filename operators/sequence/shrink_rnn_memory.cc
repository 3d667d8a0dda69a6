// shrink_rnn_memory: of X, whose rows are those of sequences in ranked order, the rows of the
// sequences that are longer than I.
//
// Source: Fluid's shrink_rnn_memory. If X is ragged, its sequences take the place of the rows.
//
// Gradient: Out@GRAD, and 0 for the rows that Out lacks.
#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"
#include "operators/common/memory_mover.h"
#include "operators/sequence/kernels/rank_table.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  RowWidth(context, "X");
  RankTableSize(context);
  CheckOneElement(context, "I");
  context.SetOutputLike("Out", "X");
  if (context.Input("X").lod_level == 0) return;
  OneLevelSequenceCount(context, "X");
  // At most all of them.
  context.DeriveLoD("Out", {"X"}, 1,
                    [](std::span<const LoD* const> parents, LoD* lod) { *lod = *parents[0]; });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([x = In<>(context, "X"), ranks = In<>(context, "RankTable"),
                         i = In<int64_t>(context, "I"), out = Out<>(context, "Out"),
                         width = RowWidth(context, "X"),
                         is_planned = context.Output("Out").shape.is_known(),
                         lod = std::make_shared<LoD>()](const KernelContext& run) {
    const Tensor& from = x.tensor(run);
    Tensor& to = out.tensor(run);
    const int64_t step = *i(run);
    const int64_t count = RankTable(ranks.tensor(run)).RowsAt(step);
    int64_t rows = count;
    if (!from.lod().empty()) {
      const std::vector<uint64_t>& offsets = from.lod().back();
      SKIFF_ENFORCE(count < static_cast<int64_t>(offsets.size()), kInvalidArgument,
                    "shrink_rnn_memory: X has ", offsets.size() - 1, " sequences, expected ", count,
                    " or more at step ", step);
      lod->resize(1);
      lod->front().assign(offsets.begin(), offsets.begin() + count + 1);
      rows = static_cast<int64_t>(offsets[static_cast<size_t>(count)]);
      if (is_planned) to.ShareLoD(lod);
    }
    SKIFF_ENFORCE(rows <= from.shape()[0], kInvalidArgument, "shrink_rnn_memory: X has ",
                  from.shape()[0], " rows, expected ", rows, " or more at step ", step);
    if (is_planned) {
      to.SetRows(rows);
    } else {
      to = Tensor(WithRows(from.shape(), rows), from.dtype(), from.place());
      if (!from.lod().empty()) to.set_lod(*lod);
    }
    MemoryMoverOf(run).CopyBytes(run, from.data<T>(), to.data<T>(),
                                 rows * width * static_cast<int64_t>(sizeof(T)));
  });
}

// How many rows of X Out had, only a run tells: see CheckGradientRows.
void InferGrad(OpContext& context) {
  RowWidth(context, "X");
  CheckInputLike(context, "Out@GRAD", WithRows(context.Input("X").shape, -1),
                 context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
}

void CheckGradientRows(const Shape& out_grad, const Shape& x) {
  SKIFF_ENFORCE(out_grad[0] <= x[0], kInvalidArgument, "shrink_rnn_memory_grad: Out@GRAD has ",
                out_grad[0], " rows, expected the ", x[0], " of X or fewer");
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  // Those of a capacity, too: then a run that is wrong in itself doesn't begin.
  CheckGradientRows(context.Input("Out@GRAD").shape, context.Input("X").shape);
  return MakeRowsKernel([out_grad = In<>(context, "Out@GRAD"),
                         x_grad = Out<>(context, "X@GRAD")](const KernelContext& run) {
    Tensor& to = x_grad.tensor(run);
    CheckGradientRows(out_grad.shape(run), to.shape());
    const int64_t bytes = out_grad.tensor(run).byte_count();
    MemoryMoverOf(run).CopyBytes(run, out_grad(run), to.raw_data(), bytes);
    MemoryMoverOf(run).ZeroBytes(run, to.data<T>() + out_grad.count(run), to.byte_count() - bytes);
  });
}

}  // namespace

void RegisterShrinkRnnMemory(OpRegistry& registry) {
  OpDef def;
  def.type = "shrink_rnn_memory";
  def.doc = "The rows of X that belong to sequences longer than I.";
  def.inputs = {{.name = "X", .doc = "A row, or a sequence, for each sequence in ranked order."},
                RankTableSlot(),
                {.name = "I", .doc = "The step: one int64.", .checks_data = true, .on_host = true}};
  def.outputs = {{.name = "Out", .doc = "The first rows, or sequences, of X."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  // Of the first elements.
  def.views = {{"X", "Out"}};
  def.sets_rows = [](const Op&) { return true; };
  OpDef grad = GradientOf(&def, {ForShape("X"), Checked("Out@GRAD")}, {"X@GRAD"});
  grad.doc = "Out@GRAD, and 0 for the rows of X that Out lacks.";
  // Out@GRAD may have fewer rows than X, but not more.
  grad.infer = InferGrad;
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  grad.adds_rows_in_place = true;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "shrink_rnn_memory", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "shrink_rnn_memory_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
