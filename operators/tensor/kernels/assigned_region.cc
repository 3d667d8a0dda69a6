#include "operators/tensor/kernels/assigned_region.h"

#include <algorithm>
#include <cstring>

#include "framework/base/error.h"
#include "operators/tensor/kernels/fill.h"

namespace skiff {
namespace {

Shape ValueShapeOf(const OpContext& context) {
  if (context.HasInput("ValueTensor")) return context.Input("ValueTensor").shape;
  const std::vector<int64_t> dims = context.IntsAttr("shape");
  return Shape{std::span<const int64_t>(dims)};
}

}  // namespace

AssignedRegion::AssignedRegion(const OpContext& context, const Shape& input)
    : selection_(context, input, SelectionRule::kSetValue) {
  Broadcast(context, ValueShapeOf(context));
}

std::vector<int> AssignedRegion::DimsOf(const OpContext& context) const {
  const std::string& op = context.op().type;
  AxisFlags is_dropped{};
  for (const int64_t given : context.IntsAttr("decrease_axes")) {
    const int axis = NormalizeAxis(given, extent().rank(), op + ": decrease_axes");
    SKIFF_ENFORCE(extent()[axis] == 1 || extent()[axis] < 0, kInvalidArgument, op,
                  ": decrease_axes names axis ", axis, ", along which ", extent()[axis],
                  " elements are set; expected 1");
    is_dropped[static_cast<size_t>(axis)] = true;
  }
  // Each of none_axes is the axis of the tensor before which a dim of 1 is inserted.
  std::vector<int64_t> inserted = context.IntsAttr("none_axes");
  std::ranges::sort(inserted);
  std::vector<int> dims;
  auto next = inserted.begin();
  for (int axis = 0; axis < extent().rank(); ++axis) {
    for (; next != inserted.end() && *next <= axis; ++next) dims.push_back(-1);
    if (!is_dropped[static_cast<size_t>(axis)]) dims.push_back(axis);
  }
  dims.insert(dims.end(), static_cast<size_t>(inserted.end() - next), -1);
  return dims;
}

void AssignedRegion::Broadcast(const OpContext& context, const Shape& value) {
  const std::vector<int> axes = DimsOf(context);
  repeats_.fill(true);
  int64_t stride = 1;
  for (int i = value.rank() - 1; i >= 0; --i) {
    const int64_t dim = value[i];
    // Counted from the last dim. Dims of 1 that the region lacks are no harm.
    const auto place = static_cast<int64_t>(axes.size()) - (value.rank() - i);
    const int axis = place < 0 ? -1 : axes[static_cast<size_t>(place)];
    const int64_t extent_there = axis < 0 ? 1 : extent()[axis];
    const bool fits = dim == 1 || dim < 0 || extent_there < 0 || dim == extent_there;
    SKIFF_ENFORCE(fits, kInvalidArgument, context.op().type, ": a value of shape ", value,
                  " doesn't broadcast to the ", extent(), " elements that are set: dim ", i,
                  " should be ", extent_there, " or 1");
    if (axis < 0 || dim <= 1) continue;
    value_strides_[static_cast<size_t>(axis)] = stride;
    repeats_[static_cast<size_t>(axis)] = false;
    stride = MultiplyCounts(stride, dim);
  }
}

std::vector<uint8_t> BytesOfValues(const OpContext& context, DType dtype) {
  const auto& values = context.Attr<std::vector<double>>("values");
  const Shape shape = ValueShapeOf(context);
  SKIFF_ENFORCE(static_cast<int64_t>(values.size()) == shape.element_count(), kInvalidArgument,
                context.op().type, ": ", values.size(), " values, expected ValueTensor, or ",
                shape.element_count(), " for shape ", shape);
  const auto size = static_cast<size_t>(SizeOf(dtype));
  std::vector<uint8_t> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    const FillValue value{.real = values[i]};
    CheckFillValue(value, dtype, context.op().type + ": values");
    const uint64_t bits = FillBits(value, dtype);
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

RegionAssignment::RegionAssignment(const OpContext& context)
    : input_(context, "Input"),
      out_(context, "Out"),
      assign_(AssignedRegion(context, context.Input("Input").shape)
                  .Assign(context.Input("Input").dtype)) {}

void RegionAssignment::Run(const KernelContext& run, const void* values) const {
  Tensor& out = out_.tensor(run);
  MemoryMoverOf(run).CopyBytes(run, input_(run), out.raw_data(), out.byte_count());
  assign_.Run(run, values, out.raw_data());
}

}  // namespace skiff
