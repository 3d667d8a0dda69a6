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
#include <algorithm>
#include <array>
#include <cstdlib>

#include "framework/base/error.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

// The elements of one axis: first, first + stride, …
struct Walk {
  int64_t first = 0;
  int64_t stride = 1;
  int64_t count = 0;
};

struct Range {
  int64_t start = 0;
  int64_t end = 0;
  int64_t stride = 1;
};

Walk WalkAlong(const Range& range, int64_t extent, const std::string& what) {
  // A stride larger than the tensor selects one element, whatever its size, and a bound of 2^62 is
  // beyond every tensor. With these limits, no sum or product overflows.
  const int64_t whole = std::max<int64_t>(extent, 1);
  const int64_t stride = std::clamp(range.stride, -whole, whole);
  const auto from_front = [extent](int64_t bound) {
    constexpr int64_t kFar = int64_t{1} << 62;
    return bound < 0 ? std::max<int64_t>(bound + extent, 0) : std::min(bound, kFar);
  };
  const int64_t start = from_front(range.start);
  const int64_t end = stride < 0 && range.end == -1 ? -1 : from_front(range.end);
  const auto text = [&] {
    return StrCat(what, ": start ", range.start, ", end ", range.end, ", stride ", range.stride,
                  " along an extent of ", extent);
  };
  SKIFF_ENFORCE(stride > 0 ? start <= end : start >= end, kInvalidArgument, text(),
                ": the end is on the wrong side of the start");
  // The range of the elements is [low, high).
  const int64_t low = stride > 0 ? start : end + 1;
  const int64_t high = std::min(extent, stride > 0 ? end : start + 1);
  SKIFF_ENFORCE(low <= extent, kOutOfRange, text(), ": the range is beyond the tensor");
  const int64_t count = (high - low + std::abs(stride) - 1) / std::abs(stride);
  return {stride > 0 ? low : high - 1, stride, count};
}

struct Selection {
  std::array<Walk, Shape::kMaxRank> walks;
  Shape extent;  // -1 where it is unknown
  bool keeps_rows = true;
};

Selection SelectionOf(const OpContext& context) {
  const std::string& op = context.op().type;
  const Shape& input = context.Input("Input").shape;
  const std::vector<int64_t> axes = context.IntsAttr("axes");
  const std::vector<int64_t> starts = context.IntsAttr("starts");
  const std::vector<int64_t> ends = context.IntsAttr("ends");
  const std::vector<int64_t> strides = context.IntsAttr("strides");
  const bool are_known =
      context.Knows("starts") && context.Knows("ends") && context.Knows("strides");
  const bool fit =
      starts.size() == axes.size() && ends.size() == axes.size() && strides.size() == axes.size();
  SKIFF_ENFORCE(fit || !are_known, kInvalidArgument, op, ": ", starts.size(), " starts, ",
                ends.size(), " ends and ", strides.size(), " strides for ", axes.size(), " axes");
  Selection selection{.walks = {}, .extent = input};
  for (int axis = 0; axis < input.rank(); ++axis) selection.walks[axis].count = input[axis];
  std::array<bool, Shape::kMaxRank> seen{};
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = NormalizeAxis(axes[i], input.rank(), op + ": axes");
    SKIFF_ENFORCE(!seen[axis], kInvalidArgument, op, ": axes = [", Join(axes, ", "),
                  "] names axis ", axis, " twice");
    seen[axis] = true;
    selection.keeps_rows = selection.keeps_rows && axis != 0;
    if (!are_known) {
      selection.extent[axis] = -1;
      continue;
    }
    SKIFF_ENFORCE(strides[i] != 0, kInvalidArgument, op, ": the stride of axis ", axis, " is 0");
    if (input[axis] < 0) continue;
    selection.walks[axis] =
        WalkAlong({starts[i], ends[i], strides[i]}, input[axis], StrCat(op, ": axis ", axis));
    selection.extent[axis] = selection.walks[axis].count;
  }
  return selection;
}

void InferStridedSlice(OpContext& context) {
  const Selection selection = SelectionOf(context);
  context.SetOutput("Out", WithoutDecreasedAxes(context, selection.extent),
                    context.Input("Input").dtype);
  SetLodLevel(context, selection.keeps_rows, "Input");
}

// The copy between the selected elements of Input and a contiguous tensor, and the offsets of the
// first element on both sides.
struct SelectionCopy {
  StridedCopy copy;
  int64_t input_offset_bytes = 0;
  int64_t out_offset_bytes = 0;
};

SelectionCopy MakeSelectionCopy(const PrepareContext& context, bool into_input) {
  const TensorMeta& input = context.Input("Input");
  const Selection selection = SelectionOf(context);
  auto input_strides = RowMajorStrides(input.shape);
  auto out_strides = RowMajorStrides(selection.extent);
  const int64_t bytes = SizeOf(input.dtype);
  SelectionCopy result;
  for (int axis = 0; axis < input.shape.rank(); ++axis) {
    const Walk& walk = selection.walks[axis];
    result.input_offset_bytes += walk.first * input_strides[axis] * bytes;
    input_strides[axis] *= walk.stride;
    // StridedCopy writes in the order of the target's memory, so the side that is written must be
    // walked upwards.
    if (!into_input || walk.stride > 0 || walk.count == 0) continue;
    result.input_offset_bytes += (walk.count - 1) * input_strides[axis] * bytes;
    result.out_offset_bytes += (walk.count - 1) * out_strides[axis] * bytes;
    input_strides[axis] = -input_strides[axis];
    out_strides[axis] = -out_strides[axis];
  }
  const auto dims = selection.extent.dims();
  result.copy = into_input ? StridedCopy(dims, out_strides, input_strides, bytes)
                           : StridedCopy(dims, input_strides, out_strides, bytes);
  // Without elements there is no first one.
  if (selection.extent.element_count() == 0) result.input_offset_bytes = 0;
  return result;
}

std::unique_ptr<Kernel> PrepareStridedSlice(PrepareContext& context) {
  return MakeKernel([selected = MakeSelectionCopy(context, /*into_input=*/false),
                     from = In<>(context, "Input"),
                     to = Out<>(context, "Out")](const KernelContext& run) {
    MoverOf(run).Copy(run, selected.copy,
                      static_cast<const char*>(from(run)) + selected.input_offset_bytes, to(run));
  });
}

std::unique_ptr<Kernel> PrepareStridedSliceGrad(PrepareContext& context) {
  return MakeKernel([selected = MakeSelectionCopy(context, /*into_input=*/true),
                     from = In<>(context, "Out@GRAD"),
                     to = Out<>(context, "Input@GRAD")](const KernelContext& run) {
    const DataMover& mover = MoverOf(run);
    MemoryMoverOf(run).ZeroBytes(run, to(run), to.tensor(run).byte_count());
    mover.Copy(run, selected.copy, static_cast<const char*>(from(run)) + selected.out_offset_bytes,
               static_cast<char*>(to(run)) + selected.input_offset_bytes);
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
