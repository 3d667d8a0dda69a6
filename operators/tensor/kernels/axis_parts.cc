#include "operators/tensor/kernels/axis_parts.h"

#include <utility>

#include "framework/base/error.h"

namespace skiff {

PartCopy::PartCopy(const Shape& whole, int axis, int64_t offset, int64_t extent, DType dtype,
                   bool from_part) {
  Shape part = whole;
  // A part is a box of the whole tensor; StridedCopy merges the axes inside and outside of `axis`,
  // so that rows as long as possible are copied.
  part[axis] = extent;
  const auto part_strides = RowMajorStrides(part);
  const auto whole_strides = RowMajorStrides(whole);
  copy_ = from_part ? StridedCopy(part.dims(), part_strides, whole_strides, SizeOf(dtype))
                    : StridedCopy(part.dims(), whole_strides, part_strides, SizeOf(dtype));
  offset_bytes_ = offset * whole_strides[axis] * SizeOf(dtype);
}

void PartCopy::Run(const void* part, void* whole) const {
  copy_.Run(part, static_cast<char*>(whole) + offset_bytes_);
}

void PartCopy::Extract(const void* whole, void* part) const {
  copy_.Run(static_cast<const char*>(whole) + offset_bytes_, part);
}

Shape WithAxis(const Shape& part, int axis, int64_t extent) {
  Shape shape(part.dims().first(static_cast<size_t>(axis)));
  shape.Append(extent);
  for (int k = axis; k < part.rank(); ++k) shape.Append(part[k]);
  return shape;
}

std::unique_ptr<Kernel> MakeSplitKernel(const PrepareContext& context, const std::string& whole,
                                        const std::string& parts, int axis,
                                        const std::vector<int64_t>& extents) {
  const TensorMeta& from = context.Input(whole);
  std::vector<std::pair<int, PartCopy>> copies;
  int64_t offset = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    const int index = context.OutputIndex(parts, i);
    if (index >= 0) {
      copies.emplace_back(index, PartCopy(from.shape, axis, offset, extents[i], from.dtype,
                                          /*from_part=*/false));
    }
    offset += extents[i];
  }
  return MakeKernel(
      [from = context.InputIndex(whole), copies = std::move(copies)](const KernelContext& run) {
        for (const auto& [index, copy] : copies) {
          copy.Extract(run.input(from).raw_data(), run.output(index).raw_data());
        }
      });
}

std::unique_ptr<Kernel> MakeJoinKernel(const PrepareContext& context, const std::string& parts,
                                       const std::string& whole, int axis,
                                       const std::vector<int64_t>& extents) {
  const TensorMeta& joined = context.Output(whole);
  std::vector<std::pair<int, PartCopy>> copies;
  int64_t offset = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    copies.emplace_back(context.InputIndex(parts, i),
                        PartCopy(joined.shape, axis, offset, extents[i], joined.dtype,
                                 /*from_part=*/true));
    offset += extents[i];
  }
  return MakeKernel(
      [to = context.OutputIndex(whole), copies = std::move(copies)](const KernelContext& run) {
        for (const auto& [index, copy] : copies) {
          copy.Run(run.input(index).raw_data(), run.output(to).raw_data());
        }
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
