// The role of an op in training: the bits of Fluid's `op_role` attribute, and the names that Fluid
// gives to attributes and variables with a fixed meaning.
#pragma once

#include <cstdint>

namespace skiff {

inline constexpr int32_t kRoleForward = 0;
inline constexpr int32_t kRoleBackward = 1;
inline constexpr int32_t kRoleOptimize = 2;
inline constexpr int32_t kRoleLRSched = 16;
inline constexpr int32_t kRoleLoss = 0x100;

inline constexpr const char* kOpRoleAttr = "op_role";
inline constexpr const char* kOpRoleVarAttr = "op_role_var";
inline constexpr const char* kOpNamescopeAttr = "op_namescope";

// Takes the place of an absent argument in a slot where positions count.
inline constexpr const char* kEmptyVarName = "@EMPTY@";
inline constexpr const char* kGradSuffix = "@GRAD";

}  // namespace skiff
