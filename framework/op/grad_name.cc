#include "framework/op/grad_name.h"

#include "framework/ir/op_role.h"

namespace skiff {

std::string GradName(std::string_view name) { return std::string(name) + kGradSuffix; }

std::string_view ForwardName(std::string_view gradient) {
  const size_t suffix = gradient.rfind(kGradSuffix);
  return suffix == std::string_view::npos ? std::string_view() : gradient.substr(0, suffix);
}

}  // namespace skiff
