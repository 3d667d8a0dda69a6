// less_than: Out = X < Y. Source: Fluid's less_than.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct LessThan {
  template <typename T>
  bool operator()(T x, T y) const {
    return x < y;
  }
};

}  // namespace

void RegisterLessThan(OpRegistry& registry) {
  RegisterCompare<LessThan>(registry, "less_than", "Out = whether X < Y.");
}

}  // namespace skiff
