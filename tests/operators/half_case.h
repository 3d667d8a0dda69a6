// A case in the two-byte dtypes.
#pragma once

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns a case of an op that rounds nothing (or what the reference rounds, too) in float16 and
// bfloat16. Gradients are those of another case.
inline OpCase InHalf(OpCase op_case) {
  op_case.name += "_in_half";
  op_case.dtypes = {DType::kFloat16, DType::kBFloat16};
  op_case.gradients.clear();
  return op_case;
}

}  // namespace skiff::harness
