// reorder_lod_tensor_by_rank: the sequences of X in the order of a rank table.
//
// X has as many sequences as the table, or as many rows if it isn't ragged. Source: Fluid's
// reorder_lod_tensor_by_rank.
//
// Gradient: the sequences of Out@GRAD, each in its old place.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/rank_table.h"

namespace skiff {
namespace {

void CheckCounts(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  RowWidth(context, "X");
  const bool is_ragged = x.lod_level > 0;
  const int64_t count = is_ragged ? OneLevelSequenceCount(context, "X") : x.shape[0];
  MergeDims(count, RankTableSize(context),
            context.op().type + (is_ragged ? ": the sequences of X and of the rank table"
                                           : ": the rows of X and the sequences of the table"));
}

// Sets `lod` to that of X's sequences in ranked order. `parents`: the LoDs of X and of the table.
void ReorderLoD(std::span<const LoD* const> parents, std::vector<int64_t>* order, LoD* lod) {
  const std::vector<uint64_t>& offsets = parents[0]->back();
  const std::vector<uint64_t>& ranked = parents[1]->back();
  SKIFF_ENFORCE(offsets.size() == ranked.size(), kInvalidArgument,
                "reorder_lod_tensor_by_rank: X has ", offsets.size() - 1,
                " sequences, the rank table has ", ranked.size() - 1);
  RankSequences(ranked, order);
  lod->resize(1);
  std::vector<uint64_t>& to = lod->front();
  to.assign(1, 0);
  const SequenceRows sequences(offsets);
  for (const int64_t sequence : *order) {
    to.push_back(to.back() + static_cast<uint64_t>(sequences[sequence].count()));
  }
}

void Infer(OpContext& context) {
  CheckCounts(context);
  context.SetOutputLike("Out", "X");
  const auto& ranked = context.Input("RankTable").shape_lod;
  const auto& lod = context.Input("X").lod;
  const int out = context.OutputIndex("Out");
  if (lod == nullptr || ranked == nullptr || out < 0) return;
  auto group = std::make_shared<LoDGroup>(LoDGroup{.offsets = {}, .parents = {lod, ranked}});
  // The order is kept so that a run takes no memory.
  group->derive = [order = std::vector<int64_t>()](std::span<const LoD* const> parents,
                                                   LoD* reordered) mutable {
    ReorderLoD(parents, &order, reordered);
  };
  const std::vector<const LoD*> parents = {&lod->offsets, &ranked->offsets};
  group->derive(parents, &group->offsets);
  context.mutable_outputs()[static_cast<size_t>(out)].lod = std::move(group);
}

void InferGrad(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  CheckCounts(context);
  CheckInputLike(context, "Out@GRAD", x.shape, x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

// Copies the sequences of `from` to `to`: from the places that they have in X to those by rank, or
// back if `restores`.
template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context, int from, int to, bool restores) {
  return MakeRowsKernel([=, x = context.InputIndex("X"), at = context.InputIndex("RankTable"),
                         width = RowWidth(context, "X"),
                         is_ragged = context.Input("X").lod_level > 0,
                         begins = std::vector<int64_t>()](const KernelContext& run) mutable {
    const RankTable table(run.input(at));
    const auto rows_of = [&](int64_t rank) {
      const int64_t i = table.sequence(rank);
      return is_ragged ? SequenceRows(run.input(x))[i] : RowRange{i, i + 1};
    };
    const int64_t count = is_ragged ? SequenceRows(run.input(x)).size() : run.output(to).shape()[0];
    begins.assign(1, 0);
    for (int64_t rank = 0; rank < table.size(); ++rank) {
      SKIFF_ENFORCE(table.sequence(rank) >= 0 && table.sequence(rank) < count, kOutOfRange,
                    "reorder_lod_tensor_by_rank: the rank table has sequence ",
                    table.sequence(rank), ", X has ", count);
      begins.push_back(begins.back() + rows_of(rank).count());
    }
    const T* in = run.input(from).data<T>();
    T* out = run.output(to).data<T>();
    const int64_t grain = SequenceGrain(table.size(), run.output(to).element_count());
    ParallelFor(table.size(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t rank = begin; rank < end; ++rank) {
        const RowRange rows = rows_of(rank);
        const int64_t ranked = begins[static_cast<size_t>(rank)];
        std::copy_n(in + (restores ? ranked : rows.begin) * width, rows.count() * width,
                    out + (restores ? rows.begin : ranked) * width);
      }
    });
  });
}

}  // namespace

void RegisterReorderLodTensorByRank(OpRegistry& registry) {
  OpDef def;
  def.type = "reorder_lod_tensor_by_rank";
  def.doc = "The sequences of X, or its rows, in the order of a rank table.";
  def.inputs = {{.name = "X", .doc = "As many sequences as the table, or rows if it has no LoD."},
                RankTableSlot(/*checks_data=*/true)};
  def.outputs = {{.name = "Out", .doc = "Like X, with the LoD of the new order."}};
  def.infer = Infer;
  def.grad = GradOp("reorder_lod_tensor_by_rank_grad", {"X", "RankTable", "Out@GRAD"}, {"X@GRAD"});
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "reorder_lod_tensor_by_rank", []<typename T>(PrepareContext& context) {
        return Prepare<T>(context, context.InputIndex("X"), context.OutputIndex("Out"), false);
      });

  registry.Add(SequenceGradDef("reorder_lod_tensor_by_rank",
                               "The sequences of Out@GRAD in the order of X.",
                               {{.name = "X",
                                 .doc = "Of reorder_lod_tensor_by_rank.",
                                 .shape_only = true},
                                RankTableSlot(/*checks_data=*/true),
                                {.name = "Out@GRAD", .doc = "The gradient of Out."}},
                               {{.name = "X@GRAD", .doc = "Like X."}}, InferGrad));
  registry.AddCpuKernels<float, double>(
      "reorder_lod_tensor_by_rank_grad", []<typename T>(PrepareContext& context) {
        return Prepare<T>(context, context.InputIndex("Out@GRAD"), context.OutputIndex("X@GRAD"),
                          true);
      });
}

}  // namespace skiff
