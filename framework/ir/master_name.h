// The name of the float32 weights of a parameter in half (float16 or bfloat16).
#pragma once

#include <string>
#include <string_view>

namespace skiff {

// Returns the name of the variable with the master weights, which an optimizer updates and rounds
// to the parameter. The names are those of Fluid.
std::string MasterName(std::string_view parameter);

}  // namespace skiff
