// The dims of a tensor, in a fixed inline array: making or copying a Shape allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace skiff {

class Shape {
 public:
  static constexpr int kMaxRank = 9;

  Shape() = default;  // rank 0: one element
  // Throws Error for more than kMaxRank dims.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  // Unchecked: `axis` must be in [0, rank).
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t& operator[](int axis) { return dims_[axis]; }
  // Returns the dim at `axis`; a negative axis counts from the end. Throws Error unless `axis` is
  // in [-rank, rank).
  int64_t dim(int axis) const;
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  std::vector<int64_t> ToVector() const;
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.begin() + rank_; }

  // Returns whether no dim is -1 (unknown until a run).
  bool is_known() const;
  // Returns the product of the dims. Throws Error if one is unknown or the product overflows.
  int64_t element_count() const;
  // Returns the product of dims [begin, end). Throws the same errors.
  int64_t element_count(int begin, int end) const;

  void Append(int64_t dim);

  friend bool operator==(const Shape& a, const Shape& b);
  // "[64, 10]"
  friend std::string TextOf(const Shape& shape);
  friend std::ostream& operator<<(std::ostream& stream, const Shape& shape);

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace skiff
