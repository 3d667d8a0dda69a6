// not_equal: Out = X != Y. Source: Fluid's not_equal.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct NotEqual {
  template <typename T>
  bool operator()(T x, T y) const {
    return x != y;
  }
};

}  // namespace

void RegisterNotEqual(OpRegistry& registry) {
  RegisterCompare<NotEqual>(registry, "not_equal", "Out = whether X != Y.");
}

}  // namespace skiff
