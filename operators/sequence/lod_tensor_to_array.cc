// lod_tensor_to_array: a ragged tensor, cut into the steps of its sequences.
//
// Element t of Out has row t of each sequence that is longer than t, in the order of the rank
// table. Source: Fluid's lod_tensor_to_array. Its gradient is array_to_lod_tensor.
//
// With the role Backward, Out is an array of gradients, and the op adds to the elements that it
// has.
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
  RowWidth(context, "X");
  const int64_t sequences = OwnRankTableSize(context);
  if (const auto& ranked = context.Input("RankTable").shape_lod) {
    const auto rows = static_cast<int64_t>(ranked->offsets.back().back());
    SKIFF_ENFORCE(x.shape[0] == rows, kInvalidArgument, "lod_tensor_to_array: X has ", x.shape[0],
                  " rows, expected those of the rank table, ", rows);
  }
  context.SetOutput("Out", WithRows(x.shape, sequences), x.dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel(
      [x = In<>(context, "X"), ranks = In<>(context, "RankTable"), out = Out<>(context, "Out"),
       row_bytes = RowWidth(context, "X") * static_cast<int64_t>(sizeof(T)),
       adds = (context.op().role() & kRoleBackward) != 0,
       runs = RoomForRuns(context.Input("X").shape[0])](const KernelContext& run) mutable {
        const RankTable table(ranks.tensor(run));
        // Those of a gradient are what its forward tensor had.
        const LoD& lod = x.tensor(run).lod();
        SKIFF_ENFORCE(adds || lod.empty() || table.Ranks(lod.back()), kInvalidArgument,
                      "lod_tensor_to_array: the sequences of X have other ",
                      "lengths than those of the rank table");
        table.CheckRowsWithin(x.shape(run)[0]);
        TensorArray& array = *out.tensor(run).array();
        if (!adds) array.Clear();
        for (int64_t t = 0; t < table.step_count(); ++t) {
          const Shape shape = WithRows(x.shape(run), table.RowsAt(t));
          const Tensor* before = array.Find(t);
          if (before == nullptr) {
            Tensor& element = array.Make(t, shape, kDTypeOf<T>);
            if (adds) MemoryMoverOf(run).ZeroBytes(run, element.raw_data(), element.byte_count());
          } else {
            SKIFF_ENFORCE(before->shape() == shape, kInvalidArgument,
                          "lod_tensor_to_array: element ", t, " would be added to ",
                          before->shape(), ", expected ", shape);
          }
        }
        ListRowsToSteps(table, x(run), row_bytes, &array, &runs);
        adds ? MemoryMoverOf(run).AddRuns(run, kDTypeOf<T>, runs)
             : MemoryMoverOf(run).CopyRuns(run, runs);
      });
}

std::vector<Op> Gradient(const GradContext& context) {
  Op grad("array_to_lod_tensor");
  grad.SetInput("X", context.OutputGrad("Out"));
  grad.SetInput("RankTable", context.Input("RankTable"));
  grad.SetOutput("Out", context.InputGrad("X"));
  return {std::move(grad)};
}

}  // namespace

void RegisterLodTensorToArray(OpRegistry& registry) {
  OpDef def;
  def.type = "lod_tensor_to_array";
  def.doc = "Cuts a ragged tensor into the steps of its sequences, side by side in ranked order.";
  def.inputs = {
      {.name = "X", .doc = "The rows of the sequences that the table ranks.", .checks_data = true},
      RankTableSlot(/*checks_data=*/true)};
  def.outputs = {{.name = "Out", .doc = "One element for each step.", .array = true}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.grad = Gradient;
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "lod_tensor_to_array",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
