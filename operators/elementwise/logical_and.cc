// logical_and: Out = X and Y. Source: Fluid's logical_and.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct LogicalAnd {
  template <typename T>
  bool operator()(T x, T y) const {
    return x != T{0} && y != T{0};
  }
};

}  // namespace

void RegisterLogicalAnd(OpRegistry& registry) {
  RegisterLogical<LogicalAnd>(registry, "logical_and",
                              "Out = X and Y; a number is true unless it is 0.");
}

}  // namespace skiff
