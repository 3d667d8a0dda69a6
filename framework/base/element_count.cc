#include "framework/base/element_count.h"

namespace skiff {

int64_t MultiplyCounts(int64_t a, int64_t b) {
  int64_t product = 0;
  SKIFF_ENFORCE(a >= 0 && b >= 0, kInvalidArgument, "negative count in ", a, " x ", b);
  SKIFF_ENFORCE(!__builtin_mul_overflow(a, b, &product), kOutOfRange, a, " x ", b,
                " overflows 63 bits");
  return product;
}

int64_t AddCounts(int64_t a, int64_t b) {
  int64_t sum = 0;
  SKIFF_ENFORCE(!__builtin_add_overflow(a, b, &sum), kOutOfRange, a, " + ", b,
                " overflows 63 bits");
  return sum;
}

void CheckElementLimit(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    // A dim of 0 is skipped, not multiplied: otherwise it would hide an overflow of the dims before
    // and after it, which kernels multiply on their own.
    const bool overflows = dim > 0 && __builtin_mul_overflow(count, dim, &count);
    SKIFF_ENFORCE(!overflows && count <= kMaxElementCount, kOutOfRange, "shape [", Join(dims, ", "),
                  "] has more than ", kMaxElementCount, " elements, a dim of 0 counted as 1");
  }
}

int64_t ElementCount(std::span<const int64_t> dims) {
  CheckElementLimit(dims);
  int64_t count = 1;
  for (int64_t dim : dims) {
    SKIFF_ENFORCE(dim >= 0, kInvalidArgument, "negative dim in shape [", Join(dims, ", "), "]");
    count *= dim;
  }
  return count;
}

int64_t ByteCount(int64_t elements, DType dtype) { return MultiplyCounts(elements, SizeOf(dtype)); }

}  // namespace skiff
