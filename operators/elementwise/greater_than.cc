// greater_than: Out = X > Y. Source: Fluid's greater_than.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct GreaterThan {
  template <typename T>
  bool operator()(T x, T y) const {
    return x > y;
  }
};

}  // namespace

void RegisterGreaterThan(OpRegistry& registry) {
  RegisterCompare<GreaterThan>(registry, "greater_than", "Out = whether X > Y.");
}

}  // namespace skiff
