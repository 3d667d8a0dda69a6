// logical_xor: Out = either X or Y, but not both. Source: Fluid's logical_xor.
#include "operators/elementwise/kernels/comparison.h"

namespace skiff {
namespace {

struct LogicalXor {
  template <typename T>
  bool operator()(T x, T y) const {
    return (x != T{0}) != (y != T{0});
  }
};

}  // namespace

void RegisterLogicalXor(OpRegistry& registry) {
  RegisterLogical<LogicalXor>(
      registry, "logical_xor",
      "Out = either X or Y, but not both; a number is true unless it is 0.");
}

}  // namespace skiff
