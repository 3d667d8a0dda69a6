// strided_slice: Out[i] = Input[start + i * stride] along each of `axes`.
//
// Source: Fluid's strided_slice. A negative bound counts from the back; bounds are clamped to the
// tensor. With a negative stride, the walk goes down from `start` and stops before `end`, and an
// `end` of -1 means "through element 0" (not the last element, as it would in Python). Axes in
// `decrease_axis`, whose extent must be 1 after slicing, are dropped from the shape.
//
// What Fluid refuses or leaves undefined is an Error: a stride of 0, an end on the wrong side of
// the start, a range completely beyond the tensor, an axis named twice.
//
// Gradient: Input@GRAD is Out@GRAD where Out was taken from and 0 elsewhere.
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/strided_selection.h"

namespace skiff {
namespace {

StridedSelection SelectionOf(const OpContext& context) {
  return StridedSelection(context, context.Input("Input").shape, SelectionRule::kStridedSlice);
}

void InferStridedSlice(OpContext& context) {
  const StridedSelection selection = SelectionOf(context);
  context.SetOutput("Out", WithoutDecreasedAxes(context, selection.extent()),
                    context.Input("Input").dtype);
  SetLodLevel(context, selection.keeps_rows(), "Input");
}

std::unique_ptr<Kernel> PrepareStridedSlice(PrepareContext& context) {
  return MakeKernel([selected = SelectionOf(context).CopyOut(context.Input("Input").dtype),
                     from = In<>(context, "Input"), to = Out<>(context, "Out")](
                        const KernelContext& run) { selected.Run(run, from(run), to(run)); });
}

std::unique_ptr<Kernel> PrepareStridedSliceGrad(PrepareContext& context) {
  const StridedSelection selection = SelectionOf(context);
  return MakeKernel([selected = selection.CopyIn(RowMajorStrides(selection.extent()),
                                                 context.Input("Input").dtype),
                     from = In<>(context, "Out@GRAD"),
                     to = Out<>(context, "Input@GRAD")](const KernelContext& run) {
    MemoryMoverOf(run).ZeroBytes(run, to(run), to.tensor(run).byte_count());
    selected.Run(run, from(run), to(run));
  });
}

std::vector<AttrDef> StridedSliceAttrs() {
  const auto ints = [](StaticText name, StaticText doc) {
    return AttrDef{
        .name = name, .type = AttrType::kInts, .default_value = std::vector<int32_t>{}, .doc = doc};
  };
  return {{.name = "axes", .type = AttrType::kInts, .doc = "The axes to slice."},
          ints("starts", "The first index along each of `axes`, negative from the back."),
          ints("ends", "The index that ends the walk along each of `axes`, not included."),
          ints("strides", "The step along each of `axes`; negative walks down."),
          ints("infer_flags",
               "Fluid's mark (-1) of bounds that come from a tensor; nothing depends on it."),
          ints("decrease_axis", "Axes of extent 1 to drop from the shape of Out.")};
}

}  // namespace

void RegisterStridedSlice(OpRegistry& registry) {
  OpDef def;
  def.type = "strided_slice";
  def.doc = "Out = Input[…, start:end:stride, …] along each of `axes`.";
  def.inputs = {
      {.name = "Input", .doc = "Any tensor."},          AttributeSlot("StartsTensor", "starts"),
      AttributeListSlot("StartsTensorList", "starts"),  AttributeSlot("EndsTensor", "ends"),
      AttributeListSlot("EndsTensorList", "ends"),      AttributeSlot("StridesTensor", "strides"),
      AttributeListSlot("StridesTensorList", "strides")};
  def.outputs = {{.name = "Out", .doc = "The elements taken."}};
  def.attrs = StridedSliceAttrs();
  def.infer = InferStridedSlice;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def,
                          {ForShape("Input"), "Out@GRAD", "StartsTensor", "StartsTensorList",
                           "EndsTensor", "EndsTensorList", "StridesTensor", "StridesTensorList"},
                          {"Input@GRAD"});
  grad.doc = "Input@GRAD = Out@GRAD at the elements that strided_slice took, 0 elsewhere.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "strided_slice", PrepareStridedSlice);
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "strided_slice_grad", PrepareStridedSliceGrad);
}

}  // namespace skiff
