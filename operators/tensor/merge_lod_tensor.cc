// merge_lod_tensor: the inverse of split_lod_tensor.
//
// Row i of Out is the next row of InTrue where Mask is true, else the next one of InFalse. Source:
// Fluid's merge_lod_tensor. Its gradient is split_lod_tensor.
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/row_mask.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  CheckRowMask(context);
  const TensorMeta& in_true = context.Input("InTrue");
  const TensorMeta& in_false = context.Input("InFalse");
  Shape shape = in_true.shape;
  SKIFF_ENFORCE(shape.rank() >= 1 && in_false.shape.rank() == shape.rank(), kInvalidArgument,
                "merge_lod_tensor: InTrue is ", shape, " and InFalse ", in_false.shape,
                ", expected rows of the same dims");
  for (int axis = 1; axis < shape.rank(); ++axis) {
    shape[axis] = MergeDims(shape[axis], in_false.shape[axis], "merge_lod_tensor: dims of a row");
  }
  SKIFF_ENFORCE(in_false.dtype == in_true.dtype, kInvalidArgument, "merge_lod_tensor: InTrue is ",
                in_true.dtype, ", InFalse is ", in_false.dtype);
  shape[0] = context.Input("X").shape[0];
  context.SetOutput("Out", shape, in_true.dtype);
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeKernel(
      [mask = In<>(context, "Mask"), in_true = In<>(context, "InTrue"),
       in_false = In<>(context, "InFalse"), out = Out<>(context, "Out"),
       runs = RoomForRuns(context.Output("Out").shape[0])](const KernelContext& run) mutable {
        for (const bool value : {true, false}) {
          const int64_t rows = (value ? in_true : in_false).shape(run)[0];
          const int64_t chosen = CountRows(mask.tensor(run), value);
          SKIFF_ENFORCE(rows == chosen, kInvalidArgument,
                        "merge_lod_tensor: ", value ? "InTrue" : "InFalse", " has ", rows,
                        " rows, the mask chooses ", chosen);
        }
        const int64_t bytes = RowBytes(out.tensor(run));
        auto* to = static_cast<char*>(out(run));
        const auto* from_true = static_cast<const char*>(in_true(run));
        const auto* from_false = static_cast<const char*>(in_false(run));
        runs.clear();
        for (const bool chosen : mask.tensor(run).values<bool>()) {
          const char*& from = chosen ? from_true : from_false;
          runs.push_back({.from = from, .to = to, .bytes = bytes});
          from += bytes;
          to += bytes;
        }
        MemoryMoverOf(run).CopyRuns(run, runs);
      });
}

std::vector<Op> Gradient(const GradContext& context) {
  Op grad("split_lod_tensor");
  grad.SetInput("X", context.OutputGrad("Out")).SetInput("Mask", context.Input("Mask"));
  grad.SetOutput("OutTrue", context.InputGrad("InTrue"));
  grad.SetOutput("OutFalse", context.InputGrad("InFalse"));
  return {std::move(grad)};
}

}  // namespace

void RegisterMergeLodTensor(OpRegistry& registry) {
  OpDef def;
  def.type = "merge_lod_tensor";
  def.doc = "Puts the rows that a mask has split together again.";
  def.inputs = {{.name = "X", .doc = "What was split: gives the rows.", .shape_only = true},
                {.name = "Mask", .doc = "bool [rows, 1].", .checks_data = true, .on_host = true},
                {.name = "InTrue", .doc = "A row for each true of the mask."},
                {.name = "InFalse", .doc = "A row for each false."}};
  def.outputs = {{.name = "Out", .doc = "[rows, …]."}};
  def.attrs = {{.name = "level",
                .type = AttrType::kInt,
                .default_value = 0,
                .doc = "The LoD level that was split; ignored, since X has none."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.grad = Gradient;
  def.kernel_dtype_slot = "InTrue";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "merge_lod_tensor", Prepare);
}

}  // namespace skiff
