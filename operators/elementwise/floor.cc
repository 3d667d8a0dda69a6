// floor: Out = the largest integer that is no more than X. Source: Fluid's floor.
//
// X@GRAD = 0, as its slope is wherever it has one.
#include <cmath>

#include "operators/elementwise/unary_shared.h"

namespace skiff {
namespace {

struct Floor {
  template <typename T>
  T operator()(T x) const {
    return std::floor(x);
  }
};

struct FloorGrad {
  template <typename T>
  T operator()(T, T) const {
    return T{0};
  }
};

}  // namespace

void RegisterFloor(OpRegistry& registry) {
  RegisterUnary<Floor, FloorGrad>(registry,
                                  {.type = "floor",
                                   .doc = "Out = the largest integer that is no more than X.",
                                   .grad_doc = "X@GRAD = 0.",
                                   .grad_reads = "",
                                   .zero_preserving = true,
                                   .grad_zero_preserving = true});
}

}  // namespace skiff
