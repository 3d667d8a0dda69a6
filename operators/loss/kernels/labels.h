// Labels (a class for each row, int64 or int32) and a bounded logarithm, for classification losses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "framework/op/op_context.h"
#include "framework/tensor/tensor.h"
#include "operators/common/first_bad_index.h"

namespace skiff {

// Throws Error, which names the op `where`, unless `label` fits `scores`, whose classes are at
// `axis`. Soft labels have the shape and dtype of the scores. Hard labels are integers whose shape
// has a 1 at `axis`, or lacks that dim. Dims may be -1.
void CheckLabel(std::string_view where, const TensorMeta& scores, const TensorMeta& label, int axis,
                bool is_soft);

// Returns the shape of a loss: that of the scores, with 1 at `axis`.
Shape LossShape(const Shape& scores, int axis);

// Returns the shape of losses of scores whose classes are in the last dim: with 1 in its place if
// hard labels keep that dim, else without it.
Shape RowLossShape(const Shape& scores, const Shape& label);

// Returns the logarithm; that of 0 is bounded as in Fluid.
template <typename T>
T BoundedLog(T value) {
  return std::max(std::log(value), T(-1e20));
}

// Reads hard labels of either integer type.
class LabelReader {
 public:
  explicit LabelReader(const Tensor& label)
      : data_(label.raw_data()), is_int64_(label.dtype() == DType::kInt64) {}
  int64_t operator[](int64_t item) const {
    return is_int64_ ? static_cast<const int64_t*>(data_)[item]
                     : int64_t{static_cast<const int32_t*>(data_)[item]};
  }

 private:
  const void* data_;
  bool is_int64_;
};

// Throws the Error of op `where` for an item whose label isn't a class.
[[noreturn]] void ThrowLabel(std::string_view where, int64_t item, int64_t label, int64_t classes,
                             int64_t ignore_index);

// Throws that Error if `bad` has recorded an item.
void ThrowIfFound(const FirstBadIndex& bad, std::string_view where, const LabelReader& labels,
                  int64_t classes, int64_t ignore_index);

}  // namespace skiff
