// equal: Out = X == Y. Source: Fluid's equal.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct Equal {
  template <typename T>
  bool operator()(T x, T y) const {
    return x == y;
  }
};

}  // namespace

void RegisterEqual(OpRegistry& registry) {
  RegisterCompare<Equal>(registry, "equal", "Out = whether X == Y.");
}

}  // namespace skiff
