// slice: Out = the box of Input from `starts` to `ends` along `axes`.
//
// Source: Fluid's slice. Negative bounds count from the back, bounds beyond the tensor are clamped
// to it, and an end before its start gives an extent of 0. Axes in `decrease_axis`, whose extent
// must be 1 after slicing, are dropped from the shape (if all are, Out is a scalar).
//
// Gradient: Input@GRAD is Out@GRAD inside the box and 0 outside.
#include <algorithm>
#include <array>

#include "framework/base/error.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

// Returns a bound as an index in [0, extent].
int64_t ClampBound(int64_t bound, int64_t extent) {
  return std::clamp<int64_t>(bound < 0 ? bound + extent : bound, 0, extent);
}

struct Box {
  Shape start;
  Shape extent;  // -1 where it is unknown
};

// The attributes, by axis.
struct Bounds {
  bool are_known = true;
  std::array<bool, Shape::kMaxRank> is_sliced{};
  std::array<int64_t, Shape::kMaxRank> starts{};
  std::array<int64_t, Shape::kMaxRank> ends{};
};

Bounds BoundsOf(const OpContext& context) {
  const std::string& op = context.op().type;
  const Shape& input = context.Input("Input").shape;
  const std::vector<int64_t> axes = context.IntsAttr("axes");
  const std::vector<int64_t> starts = context.IntsAttr("starts");
  const std::vector<int64_t> ends = context.IntsAttr("ends");
  Bounds bounds{.are_known = context.Knows("starts") && context.Knows("ends")};
  const bool fit = starts.size() == axes.size() && ends.size() == axes.size();
  SKIFF_ENFORCE(fit || !bounds.are_known, kInvalidArgument, op, ": ", starts.size(), " starts and ",
                ends.size(), " ends for ", axes.size(), " axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = NormalizeAxis(axes[i], input.rank(), op + ": axes");
    SKIFF_ENFORCE(!bounds.is_sliced[axis], kInvalidArgument, op, ": axes = [", Join(axes, ", "),
                  "] names axis ", axis, " twice");
    bounds.is_sliced[axis] = true;
    if (!bounds.are_known) continue;
    bounds.starts[axis] = starts[i];
    bounds.ends[axis] = ends[i];
  }
  return bounds;
}

Box BoxIn(const Shape& input, const Bounds& bounds) {
  Box box{.start = input, .extent = input};
  for (int axis = 0; axis < input.rank(); ++axis) {
    box.start[axis] = 0;
    if (!bounds.is_sliced[axis] || input[axis] < 0) continue;
    if (!bounds.are_known) {
      box.extent[axis] = -1;
      continue;
    }
    box.start[axis] = ClampBound(bounds.starts[axis], input[axis]);
    const int64_t end = ClampBound(bounds.ends[axis], input[axis]);
    box.extent[axis] = std::max<int64_t>(0, end - box.start[axis]);
  }
  return box;
}

void InferSlice(OpContext& context) {
  const Bounds bounds = BoundsOf(context);
  const TensorMeta& input = context.Input("Input");
  context.SetOutput("Out", WithoutDecreasedAxes(context, BoxIn(input.shape, bounds).extent),
                    input.dtype);
  SetLodLevel(context, /*same_rows=*/!bounds.is_sliced[0], "Input");
}

// The copy between the box of Input and a contiguous tensor, and where the box begins.
struct BoxCopy {
  StridedCopy copy;
  int64_t offset_bytes = 0;
};

// Allocates nothing.
BoxCopy MakeBoxCopy(const Shape& input, const Bounds& bounds, DType dtype, bool into_input) {
  const Box box = BoxIn(input, bounds);
  const auto input_strides = RowMajorStrides(input);
  const auto box_strides = RowMajorStrides(box.extent);
  const int64_t bytes = SizeOf(dtype);
  BoxCopy result;
  for (int axis = 0; axis < input.rank(); ++axis) {
    result.offset_bytes += box.start[axis] * input_strides[axis] * bytes;
  }
  result.copy = into_input ? StridedCopy(box.extent.dims(), box_strides, input_strides, bytes)
                           : StridedCopy(box.extent.dims(), input_strides, box_strides, bytes);
  return result;
}

std::unique_ptr<Kernel> PrepareSlice(PrepareContext& context) {
  return MakeRowsKernel([bounds = BoundsOf(context), from = In<>(context, "Input"),
                         to = Out<>(context, "Out")](const KernelContext& run) {
    const BoxCopy box =
        MakeBoxCopy(from.shape(run), bounds, from.tensor(run).dtype(), /*into_input=*/false);
    MoverOf(run).Copy(run, box.copy, static_cast<const char*>(from(run)) + box.offset_bytes,
                      to(run));
  });
}

std::unique_ptr<Kernel> PrepareSliceGrad(PrepareContext& context) {
  return MakeRowsKernel([bounds = BoundsOf(context), from = In<>(context, "Out@GRAD"),
                         to = Out<>(context, "Input@GRAD")](const KernelContext& run) {
    if (!to.is_there()) return;
    Tensor& grad = to.tensor(run);
    const BoxCopy box = MakeBoxCopy(grad.shape(), bounds, grad.dtype(), /*into_input=*/true);
    const DataMover& mover = MoverOf(run);
    MemoryMoverOf(run).ZeroBytes(run, grad.raw_data(), grad.byte_count());
    mover.Copy(run, box.copy, from(run), static_cast<char*>(grad.raw_data()) + box.offset_bytes);
  });
}

std::vector<AttrDef> SliceAttrs() {
  const auto ints = [](StaticText name, StaticText doc) {
    return AttrDef{
        .name = name, .type = AttrType::kInts, .default_value = std::vector<int32_t>{}, .doc = doc};
  };
  return {{.name = "axes", .type = AttrType::kInts, .doc = "The axes to slice."},
          ints("starts", "The first index along each of `axes`, negative from the back."),
          ints("ends", "The index after the last along each of `axes`, negative from the back."),
          ints("infer_flags",
               "Fluid's mark (-1) of bounds that come from a tensor; nothing depends on it."),
          ints("decrease_axis", "Axes of extent 1 to drop from the shape of Out.")};
}

}  // namespace

void RegisterSlice(OpRegistry& registry) {
  OpDef def;
  def.type = "slice";
  def.doc = "Out = Input[…, start:end, …] along each of `axes`, with bounds clamped to the tensor.";
  def.inputs = {{.name = "Input", .doc = "Any tensor."},
                AttributeSlot("StartsTensor", "starts"),
                AttributeSlot("EndsTensor", "ends"),
                AttributeListSlot("StartsTensorList", "starts"),
                AttributeListSlot("EndsTensorList", "ends")};
  def.outputs = {{.name = "Out", .doc = "The box."}};
  def.attrs = SliceAttrs();
  def.infer = InferSlice;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def,
                          {ForShape("Input"), "Out@GRAD", "StartsTensor", "EndsTensor",
                           "StartsTensorList", "EndsTensorList"},
                          {"Input@GRAD"});
  grad.doc = "Input@GRAD = Out@GRAD inside the box that slice cut out, 0 outside.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "slice", PrepareSlice);
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "slice_grad", PrepareSliceGrad);
}

}  // namespace skiff
