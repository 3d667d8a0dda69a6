// What put_along_axis does with an element and the values that are put to it.
#pragma once

#include <string>

#include "framework/op/op_context.h"

namespace skiff {

enum class PutReduction { kAssign, kAdd, kMultiply };

// Returns the attribute Reduce.
inline PutReduction PutReductionOf(const OpContext& context) {
  const auto& name = context.Attr<std::string>("Reduce");
  if (name == "assign") return PutReduction::kAssign;
  return name == "add" ? PutReduction::kAdd : PutReduction::kMultiply;
}

}  // namespace skiff
