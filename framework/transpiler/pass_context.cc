#include "framework/transpiler/pass_context.h"

namespace skiff {

std::string_view PassContext::ForcedKernel(const std::string& type) const {
  const auto found = forced_kernels.find(type);
  return found == forced_kernels.end() ? std::string_view() : found->second;
}

}  // namespace skiff
