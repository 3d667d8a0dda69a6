// reorder_lod_tensor_by_rank: the sequences of X in the order of a rank table.
//
// X has as many sequences as the table, or as many rows if it isn't ragged. Source: Fluid's
// reorder_lod_tensor_by_rank.
//
// Gradient: the same with the inverse order. Source: Fluid's reorder_lod_tensor_by_rank_grad.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/common/memory_mover.h"
#include "operators/sequence/kernels/rank_table.h"

namespace skiff {
namespace {

// Sets `lod` to that of X's sequences in ranked order, or, if `restores`, of ranked sequences in
// the order before. `parents`: the LoDs of X and of what the table ranks.
void ReorderLoD(std::span<const LoD* const> parents, bool restores, std::vector<int64_t>* order,
                LoD* lod) {
  const std::vector<uint64_t>& offsets = parents[0]->back();
  const std::vector<uint64_t>& ranked = parents[1]->back();
  SKIFF_ENFORCE(offsets.size() == ranked.size(), kInvalidArgument,
                "reorder_lod_tensor_by_rank: X has ", offsets.size() - 1,
                " sequences, the rank table has ", ranked.size() - 1);
  RankSequences(ranked, order);
  lod->resize(1);
  std::vector<uint64_t>& to = lod->front();
  to.assign(offsets.size(), 0);
  // Lengths first, each in its new place.
  for (size_t rank = 0; rank < order->size(); ++rank) {
    const auto sequence = static_cast<size_t>((*order)[rank]);
    const size_t from = restores ? rank : sequence;
    to[(restores ? sequence : rank) + 1] = offsets[from + 1] - offsets[from];
  }
  for (size_t i = 1; i < to.size(); ++i) to[i] += to[i - 1];
}

void Infer(OpContext& context, bool restores) {
  const TensorMeta& x = context.Input("X");
  RowWidth(context, "X");
  const bool is_ragged = x.lod_level > 0;
  const int64_t count = is_ragged ? OneLevelSequenceCount(context, "X") : x.shape[0];
  MergeDims(count, RankTableSize(context),
            context.op().type + (is_ragged ? ": the sequences of X and of the rank table"
                                           : ": the rows of X and the sequences of the table"));
  context.SetOutputLike("Out", "X");
  const auto& ranked = context.Input("RankTable").shape_lod;
  // Without it nobody would know the LoD of Out.
  SKIFF_ENFORCE(x.lod == nullptr || ranked != nullptr, kInvalidArgument, context.op().type,
                ": RankTable isn't what lod_rank_table makes of a tensor");
  const int out = context.OutputIndex("Out");
  if (x.lod == nullptr || ranked == nullptr || out < 0) return;
  auto group = std::make_shared<LoDGroup>(LoDGroup{.offsets = {}, .parents = {x.lod, ranked}});
  // The order is kept so that a run takes no memory.
  group->derive = [restores, order = std::vector<int64_t>()](std::span<const LoD* const> parents,
                                                             LoD* lod) mutable {
    ReorderLoD(parents, restores, &order, lod);
  };
  const std::vector<const LoD*> parents = {&x.lod->offsets, &ranked->offsets};
  group->derive(parents, &group->offsets);
  context.mutable_outputs()[static_cast<size_t>(out)].lod = std::move(group);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context, bool restores) {
  return MakeRowsKernel([restores, type = context.op().type, x = In<>(context, "X"),
                         ranks = In<>(context, "RankTable"), out = Out<>(context, "Out"),
                         row_bytes = RowWidth(context, "X") * static_cast<int64_t>(sizeof(T)),
                         is_ragged = context.Input("X").lod_level > 0,
                         runs = RoomForRuns(context.Input("RankTable").shape[0]),
                         seen = std::vector<bool>()](const KernelContext& run) mutable {
    const RankTable table(ranks.tensor(run));
    const Tensor& from = x.tensor(run);
    Tensor& to = out.tensor(run);
    const int64_t count = is_ragged ? SequenceRows(from).size() : from.shape()[0];
    const auto rows_of = [&](const Tensor& tensor, int64_t i) {
      return is_ragged ? SequenceRows(tensor)[i] : RowRange{i, i + 1};
    };
    runs.clear();
    seen.assign(static_cast<size_t>(count), false);
    for (int64_t rank = 0; rank < table.size(); ++rank) {
      const int64_t sequence = table.sequence(rank);
      SKIFF_ENFORCE(sequence >= 0 && sequence < count, kOutOfRange, type,
                    ": RankTable has sequence ", sequence, " at rank ", rank,
                    ", expected one of the ", count, " of X");
      SKIFF_ENFORCE(!seen[static_cast<size_t>(sequence)], kInvalidArgument, type,
                    ": RankTable has sequence ", sequence, " twice, expected each once");
      seen[static_cast<size_t>(sequence)] = true;
      const RowRange rows = rows_of(from, restores ? rank : sequence);
      const RowRange place = rows_of(to, restores ? sequence : rank);
      SKIFF_ENFORCE(rows.count() == place.count(), kInvalidArgument, type,
                    ": RankTable has sequence ", sequence, " at rank ", rank, ": ", rows.count(),
                    " rows in X and ", place.count(), " in Out, expected as many");
      runs.push_back({.from = static_cast<const char*>(from.raw_data()) + rows.begin * row_bytes,
                      .to = static_cast<char*>(to.raw_data()) + place.begin * row_bytes,
                      .bytes = rows.count() * row_bytes});
    }
    MemoryMoverOf(run).CopyRuns(run, runs);
  });
}

std::vector<Op> Gradient(const GradContext& context) {
  Op grad("reorder_lod_tensor_by_rank_grad");
  grad.SetInput("X", context.OutputGrad("Out"));
  grad.SetInput("RankTable", context.Input("RankTable"));
  grad.SetOutput("Out", context.InputGrad("X"));
  return {std::move(grad)};
}

}  // namespace

void RegisterReorderLodTensorByRank(OpRegistry& registry) {
  OpDef def;
  def.type = "reorder_lod_tensor_by_rank";
  def.doc = "The sequences of X, or its rows, in the order of a rank table.";
  def.inputs = {{.name = "X", .doc = "As many sequences as the table, or rows if it has no LoD."},
                RankTableSlot(/*checks_data=*/true)};
  def.outputs = {{.name = "Out", .doc = "Like X, with the LoD of the new order."}};
  def.infer = [](OpContext& context) { Infer(context, false); };
  def.precision = Precision::kFollow;
  def.grad = Gradient;
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "reorder_lod_tensor_by_rank",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context, false); });

  OpDef grad;
  grad.type = "reorder_lod_tensor_by_rank_grad";
  grad.doc = "Sequences, or rows, in the order of a rank table, in their order before.";
  grad.inputs = {{.name = "X", .doc = "The gradient of Out."}, RankTableSlot(/*checks_data=*/true)};
  grad.outputs = {{.name = "Out", .doc = "The gradient of X."}};
  grad.infer = [](OpContext& context) { Infer(context, true); };
  grad.precision = Precision::kFollow;
  grad.no_gradient_reason = "second derivatives are not provided";
  registry.Add(std::move(grad));
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "reorder_lod_tensor_by_rank_grad",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context, true); });
}

}  // namespace skiff
