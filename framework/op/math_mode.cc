#include "framework/op/math_mode.h"

#include "framework/base/error.h"

namespace skiff {

MathMode MathModeFromName(const std::string& name) {
  for (const MathMode mode : {MathMode::kFull, MathMode::kTf32}) {
    if (name == MathModeName(mode)) return mode;
  }
  Throw(ErrorCode::kInvalidArgument, "math \"", name, "\": expected full or tf32");
}

std::string MathModeName(MathMode mode) { return mode == MathMode::kFull ? "full" : "tf32"; }

}  // namespace skiff
