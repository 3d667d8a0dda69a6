// The extents of a tensor, in a fixed inline array: making or copying a Shape allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

namespace skiff {

class Shape {
 public:
  static constexpr int kMaxRank = 9;

  Shape() = default;  // rank 0: one element
  // Error for more than kMaxRank dims.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  // Without a check; `axis` in [0, rank).
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t& operator[](int axis) { return dims_[axis]; }
  // `axis` in [-rank, rank), negative from the back. Error outside.
  int64_t dim(int axis) const;
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  std::vector<int64_t> ToVector() const { return {dims().begin(), dims().end()}; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.begin() + rank_; }

  // True unless a dim is -1 (unknown until a run).
  bool is_known() const;
  // The product of the dims. Error if one is unknown, or for an overflow.
  int64_t element_count() const;
  // The product of dims [begin, end), same errors.
  int64_t element_count(int begin, int end) const;

  void Append(int64_t dim);

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// `axis` as an index in [0, rank). Error, naming `what`, outside [-rank, rank).
int NormalizeAxis(int64_t axis, int rank, std::string_view what);

// "[64, 10]"
std::ostream& operator<<(std::ostream& stream, const Shape& shape);

}  // namespace skiff
