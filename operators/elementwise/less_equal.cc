// less_equal: Out = X <= Y. Source: Fluid's less_equal.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct LessEqual {
  template <typename T>
  bool operator()(T x, T y) const {
    return x <= y;
  }
};

}  // namespace

void RegisterLessEqual(OpRegistry& registry) {
  RegisterCompare<LessEqual>(registry, "less_equal", "Out = whether X <= Y.");
}

}  // namespace skiff
