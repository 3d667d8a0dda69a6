// logical_or: Out = X or Y. Source: Fluid's logical_or.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct LogicalOr {
  template <typename T>
  bool operator()(T x, T y) const {
    return x != T{0} || y != T{0};
  }
};

}  // namespace

void RegisterLogicalOr(OpRegistry& registry) {
  RegisterLogical<LogicalOr>(registry, "logical_or",
                             "Out = X or Y; a number is true unless it is 0.");
}

}  // namespace skiff
