#include "operators/tensor/axis_parts_shared.h"

#include <utility>

namespace skiff {

PartCopy::PartCopy(const Shape& whole, int axis, int64_t offset, int64_t extent, DType dtype,
                   bool from_part) {
  Shape part = whole;
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

}  // namespace skiff
