#include "framework/tensor/shape.h"

#include <algorithm>
#include <ostream>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) {
  SKIFF_ENFORCE(dims.size() <= kMaxRank, kInvalidArgument, "shape [", Join(dims, ", "),
                "] has rank ", dims.size(), ", more than ", kMaxRank);
  std::copy(dims.begin(), dims.end(), dims_.begin());
  rank_ = static_cast<int>(dims.size());
}

int64_t Shape::dim(int axis) const { return dims_[NormalizeAxis(axis, rank_, "axis")]; }

bool Shape::is_known() const {
  return std::none_of(begin(), end(), [](int64_t dim) { return dim < 0; });
}

int64_t Shape::element_count() const { return ElementCount(dims()); }

int64_t Shape::element_count(int begin, int end) const {
  return ElementCount(dims().subspan(begin, end - begin));
}

void Shape::Append(int64_t dim) {
  SKIFF_ENFORCE(rank_ < kMaxRank, kInvalidArgument, "shape ", *this, " can't grow beyond rank ",
                kMaxRank);
  dims_[rank_++] = dim;
}

std::vector<int64_t> Shape::ToVector() const { return {begin(), end()}; }

bool operator==(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

int NormalizeAxis(int64_t axis, int rank, std::string_view what) {
  SKIFF_ENFORCE(axis >= -rank && axis < rank, kOutOfRange, what, " = ", axis, " is outside [",
                -rank, ", ", rank - 1, "]");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::string TextOf(const Shape& shape) { return StrCat("[", Join(shape.dims(), ", "), "]"); }

std::ostream& operator<<(std::ostream& stream, const Shape& shape) {
  return stream << TextOf(shape);
}

}  // namespace skiff
