#include "operators/tensor/kernels/axis_parts.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "operators/tensor/kernels/data_mover.h"

namespace skiff {

Shape WithAxis(const Shape& part, int axis, int64_t extent) {
  Shape shape(part.dims().first(static_cast<size_t>(axis)));
  shape.Append(extent);
  for (int k = axis; k < part.rank(); ++k) shape.Append(part[k]);
  return shape;
}

namespace {

// A part of a prepared kernel.
struct Part {
  int index;       // among the kernel's arguments; -1: absent
  int64_t extent;  // when the kernel was prepared

  // Returns the extent in a run. A part without the axis takes one index of it.
  int64_t ExtentOf(const Tensor& part, const Shape& whole, int axis) const {
    return part.shape().rank() == whole.rank() ? part.shape()[axis] : extent;
  }
};

}  // namespace

std::unique_ptr<Kernel> MakeSplitKernel(const PrepareContext& context, const std::string& whole,
                                        const std::string& parts, int axis,
                                        const std::vector<int64_t>& extents) {
  std::vector<Part> outputs;
  for (size_t i = 0; i < extents.size(); ++i) {
    outputs.push_back({context.OutputIndex(parts, i), extents[i]});
  }
  const bool all_present =
      std::ranges::all_of(outputs, [](const Part& part) { return part.index >= 0; });
  auto split = [from = In<>(context, whole), outputs = std::move(outputs), axis,
                copied = std::vector<AxisPart>(extents.size())](const KernelContext& run) mutable {
    const Tensor& tensor = from.tensor(run);
    int64_t offset = 0;
    size_t count = 0;
    for (const Part& part : outputs) {
      if (part.index < 0) {
        offset += part.extent;
        continue;
      }
      Tensor& output = run.output(part.index);
      const int64_t extent = part.ExtentOf(output, tensor.shape(), axis);
      copied[count++] = {output.raw_data(), offset, extent};
      offset += extent;
    }
    MoverOf(run).Split(run, {tensor.shape(), axis, tensor.dtype(), std::span(copied).first(count)},
                       tensor.raw_data());
  };
  // How many rows an absent part has isn't known.
  if (axis == 0 && !all_present) return MakeKernel(std::move(split));
  return MakeRowsKernel(std::move(split));
}

std::unique_ptr<Kernel> MakeJoinKernel(const PrepareContext& context, const std::string& parts,
                                       const std::string& whole, int axis,
                                       const std::vector<int64_t>& extents) {
  std::vector<Part> inputs;
  for (size_t i = 0; i < extents.size(); ++i) {
    inputs.push_back({context.InputIndex(parts, i), extents[i]});
  }
  return MakeRowsKernel(
      [to = Out<>(context, whole), inputs = std::move(inputs), axis,
       copied = std::vector<AxisPart>(extents.size())](const KernelContext& run) mutable {
        Tensor& tensor = to.tensor(run);
        int64_t offset = 0;
        for (size_t i = 0; i < inputs.size(); ++i) {
          const Tensor& input = run.input(inputs[i].index);
          const int64_t extent = inputs[i].ExtentOf(input, tensor.shape(), axis);
          // Join only reads it.
          copied[i] = {const_cast<void*>(input.raw_data()), offset, extent};
          offset += extent;
        }
        MoverOf(run).Join(run, {tensor.shape(), axis, tensor.dtype(), copied}, tensor.raw_data());
      });
}

std::unique_ptr<Kernel> MakeUnstackKernel(const PrepareContext& context, const std::string& whole,
                                          const std::string& parts, int axis) {
  return MakeSplitKernel(context, whole, parts, axis,
                         std::vector<int64_t>(context.OutputCount(parts), 1));
}

std::unique_ptr<Kernel> MakeStackKernel(const PrepareContext& context, const std::string& parts,
                                        const std::string& whole, int axis) {
  return MakeJoinKernel(context, parts, whole, axis,
                        std::vector<int64_t>(context.InputCount(parts), 1));
}

Shape CommonShape(const OpContext& context, const std::string& slot) {
  const std::string& op = context.op().type;
  const TensorMeta& first = context.Input(slot);
  Shape common = first.shape;
  for (size_t i = 1; i < context.InputCount(slot); ++i) {
    const TensorMeta& other = context.Input(slot, i);
    SKIFF_ENFORCE(other.shape.rank() == common.rank() && other.dtype == first.dtype,
                  kInvalidArgument, op, ": ", slot, "[", i, "] is ", other.dtype, " ", other.shape,
                  ", ", slot, "[0] ", first.dtype, " ", first.shape, "; expected the same");
    for (int axis = 0; axis < common.rank(); ++axis) {
      common[axis] = MergeDims(common[axis], other.shape[axis],
                               StrCat(op, ": dim ", axis, " of ", slot, "[", i, "] of shape ",
                                      other.shape, " and of the earlier ones"));
    }
  }
  return common;
}

}  // namespace skiff
