// greater_equal: Out = X >= Y. Source: Fluid's greater_equal.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct GreaterEqual {
  template <typename T>
  bool operator()(T x, T y) const {
    return x >= y;
  }
};

}  // namespace

void RegisterGreaterEqual(OpRegistry& registry) {
  RegisterCompare<GreaterEqual>(registry, "greater_equal", "Out = whether X >= Y.");
}

}  // namespace skiff
