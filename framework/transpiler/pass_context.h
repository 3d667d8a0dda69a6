// What the passes over a plan are told besides the plan.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "framework/op/registry.h"
#include "framework/transpiler/memory_options.h"

namespace skiff {

// From types of ops to names of kernels.
using KernelNames = std::map<std::string, std::string>;

struct PassContext {
  // Must outlive the context and the plan.
  const OpRegistry& registry;
  MemoryOptions memory = {};
  // The kernels that the user forces on ops, wherever they take the shapes. No pass puts another op
  // in the place of such an op.
  KernelNames forced_kernels = {};

  // Returns the kernel that is forced on ops of this type, or "" if none is.
  std::string_view ForcedKernel(const std::string& type) const;
};

}  // namespace skiff
