// array_to_lod_tensor: the ragged tensor whose steps are the elements of an array.
//
// The inverse of lod_tensor_to_array. Source: Fluid's array_to_lod_tensor. Its gradient is
// lod_tensor_to_array.
//
// With the role Backward, X is an array of gradients: elements that it lacks are 0.
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "framework/tensor/tensor_array.h"
#include "operators/common/half.h"
#include "operators/common/memory_mover.h"
#include "operators/sequence/kernels/rank_table.h"
#include "operators/sequence/kernels/ranked_rows.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  OwnRankTableSize(context);
  SKIFF_ENFORCE(x.lod_level >= 0, kInvalidArgument,
                "array_to_lod_tensor: no op before writes to the array X");
  SKIFF_ENFORCE(x.shape.rank() >= 1, kInvalidArgument,
                "array_to_lod_tensor: the elements of X have the shape ", x.shape,
                ", expected rows");
  const auto& ranked = context.Input("RankTable").shape_lod;
  const int64_t rows = ranked == nullptr ? -1 : static_cast<int64_t>(ranked->offsets.back().back());
  context.SetOutput("Out", WithRows(x.shape, rows), x.dtype);
  const int out = context.OutputIndex("Out");
  if (out < 0) return;
  TensorMeta& output = context.mutable_outputs()[static_cast<size_t>(out)];
  output.lod_level = ranked == nullptr ? 1 : static_cast<int32_t>(ranked->offsets.size());
  output.lod = ranked;
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel(
      [x = In<>(context, "X"), ranks = In<>(context, "RankTable"), out = Out<>(context, "Out"),
       row_bytes = RowWidth(context, "X") * static_cast<int64_t>(sizeof(T)),
       may_lack = (context.op().role() & kRoleBackward) != 0,
       runs = RoomForRuns(context.Output("Out").shape[0])](const KernelContext& run) mutable {
        const RankTable table(ranks.tensor(run));
        const LoD& lod = out.tensor(run).lod();
        SKIFF_ENFORCE(lod.empty() || table.Ranks(lod.back()), kInvalidArgument,
                      "array_to_lod_tensor: RankTable isn't that of the sequences of Out");
        table.CheckRowsWithin(out.shape(run)[0]);
        const TensorArray& array = *x.tensor(run).array();
        for (int64_t t = 0; t < table.step_count(); ++t) {
          if (may_lack && array.Find(t) == nullptr) continue;
          const Shape& shape = array.At(t).shape();
          const Shape expected = WithRows(out.shape(run), table.RowsAt(t));
          SKIFF_ENFORCE(shape == expected, kInvalidArgument, "array_to_lod_tensor: element ", t,
                        " of X has the shape ", shape, ", expected ", expected);
        }
        ListRowsOfSteps(table, array, row_bytes, out(run), &runs);
        MemoryMoverOf(run).CopyRuns(run, runs);
      });
}

std::vector<Op> Gradient(const GradContext& context) {
  Op grad("lod_tensor_to_array");
  grad.SetInput("X", context.OutputGrad("Out"));
  grad.SetInput("RankTable", context.Input("RankTable"));
  grad.SetOutput("Out", context.InputGrad("X"));
  return {std::move(grad)};
}

}  // namespace

void RegisterArrayToLodTensor(OpRegistry& registry) {
  OpDef def;
  def.type = "array_to_lod_tensor";
  def.doc = "Puts the steps of sequences together to a ragged tensor.";
  def.inputs = {{.name = "X",
                 .doc = "Element t: row t of each sequence that is longer than t, in ranked order.",
                 .checks_data = true,
                 .array = true},
                RankTableSlot(/*checks_data=*/true)};
  def.outputs = {{.name = "Out", .doc = "With the LoD of the tensor that the table ranks."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.grad = Gradient;
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "array_to_lod_tensor",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
