// lod_tensor_to_array: a ragged tensor, cut into the steps of its sequences.
//
// Element t of Out has row t of each sequence that is longer than t, in the order of the rank
// table. Source: Fluid's lod_tensor_to_array. Its gradient is array_to_lod_tensor.
//
// With the role Backward, Out is an array of gradients, and the op adds to the elements that it
// has.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "framework/tensor/tensor_array.h"
#include "operators/sequence/kernels/rank_table.h"

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
  return MakeRowsKernel([x = context.InputIndex("X"), at = context.InputIndex("RankTable"),
                         out = context.OutputIndex("Out"), width = RowWidth(context, "X"),
                         adds =
                             (context.op().role() & kRoleBackward) != 0](const KernelContext& run) {
    const RankTable table(run.input(at));
    // Those of a gradient are what its forward tensor had.
    const LoD& lod = run.input(x).lod();
    SKIFF_ENFORCE(adds || lod.empty() || lod.back() == run.input(at).lod().back(), kInvalidArgument,
                  "lod_tensor_to_array: the sequences of X have other lengths than those of the ",
                  "rank table");
    const T* from = run.input(x).data<T>();
    TensorArray& array = *run.output(out).array();
    const int64_t steps = table.step_count();
    if (!adds) array.Clear();
    for (int64_t t = 0; t < steps; ++t) {
      const Shape shape = WithRows(run.input(x).shape(), table.RowsAt(t));
      const Tensor* before = array.Find(t);
      if (before == nullptr) {
        Tensor& element = array.Make(t, shape, kDTypeOf<T>);
        if (adds) std::fill_n(element.data<T>(), element.element_count(), T(0));
      } else {
        SKIFF_ENFORCE(before->shape() == shape, kInvalidArgument, "lod_tensor_to_array: element ",
                      t, " would be added to ", before->shape(), ", expected ", shape);
      }
    }
    const int64_t grain = SequenceGrain(table.size(), run.input(x).element_count());
    ParallelFor(table.size(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t rank = begin; rank < end; ++rank) {
        const RowRange rows = table.rows(rank);
        for (int64_t t = 0; t < rows.count(); ++t) {
          const T* row = from + (rows.begin + t) * width;
          T* to = array.At(t).data<T>() + rank * width;
          if (adds) {
            for (int64_t i = 0; i < width; ++i) to[i] = static_cast<T>(to[i] + row[i]);
          } else {
            std::copy_n(row, width, to);
          }
        }
      }
    });
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
      RankTableSlot()};
  def.outputs = {{.name = "Out", .doc = "One element for each step.", .array = true}};
  def.infer = Infer;
  def.grad = Gradient;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "lod_tensor_to_array",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
