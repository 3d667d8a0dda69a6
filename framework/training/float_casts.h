// Casts variables of a scope to other dtypes of floats.
#pragma once

#include <string>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/executor/executor.h"

namespace skiff::training {

// Returns whether weights of the dtype can be cast to another such dtype.
inline bool IsFloat32OrHalf(DType dtype) { return dtype == DType::kFloat32 || IsHalf(dtype); }

struct FloatCast {
  std::string from;  // a variable of the scope
  std::string to;    // the one to set
  DType dtype = DType::kFloat32;
};

// Makes all casts in the executor's scope, as the op cast does: numbers are rounded to nearest.
void CastFloats(const std::vector<FloatCast>& casts, Executor* executor);

}  // namespace skiff::training
