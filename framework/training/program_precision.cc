#include "framework/training/program_precision.h"

#include "framework/base/str_cat.h"
#include "framework/ir/op_role.h"

namespace skiff::training {
namespace {

// Returns float32 if no forward op makes anything in half.
DType HalfMadeBy(const Program& main) {
  for (size_t b = 0; b < main.block_count(); ++b) {
    const Block& block = *main.block(static_cast<int32_t>(b));
    for (const auto& op : block.ops()) {
      if ((op->role() & (kRoleBackward | kRoleOptimize | kRoleLRSched)) != 0) continue;
      for (const std::string& name : op->OutputNames()) {
        const Var* var = block.FindVar(name);
        if (var != nullptr && IsHalf(var->dtype)) return var->dtype;
      }
    }
  }
  return DType::kFloat32;
}

}  // namespace

std::map<std::string, std::string> ProgramPrecision::Settings() const {
  const bool casts = IsHalf(dtype) && half_parameters == 0;
  return {{"precision", StrCat(dtype)}, {"precision_level", casts ? "casts" : "parameters"}};
}

std::string ProgramPrecision::Text() const {
  if (!IsHalf(dtype)) return "";
  return StrCat(dtype, ": ", half_parameters, " of ", parameters, " parameters");
}

ProgramPrecision PrecisionOf(const Program& main) {
  ProgramPrecision precision;
  for (const auto& var : main.root()->vars()) {
    if (!var->is_parameter) continue;
    ++precision.parameters;
    if (!IsHalf(var->dtype)) continue;
    if (precision.half_parameters++ == 0) precision.dtype = var->dtype;
  }
  if (precision.half_parameters == 0) precision.dtype = HalfMadeBy(main);
  return precision;
}

}  // namespace skiff::training
