// The options of passes.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "framework/op/registry.h"
#include "framework/transpiler/api/data_parallel_options.h"
#include "framework/transpiler/api/pass_options.h"
#include "framework/transpiler/memory_options.h"

namespace skiff {

// For program passes. Passes that need no option take a registry for it.
struct ProgramPassContext {
  ProgramPassContext(const OpRegistry& of_ops, DataParallelOptions of_ranks = {})
      : registry(of_ops), data_parallel(std::move(of_ranks)) {}

  // Must outlive the context.
  const OpRegistry& registry;
  DataParallelOptions data_parallel;
};

// For plan passes.
struct PassContext {
  // Must outlive the context and the plan.
  const OpRegistry& registry;
  MemoryOptions memory = {};
  // The kernels that the user forces on ops, where they take the shapes. No pass replaces such an
  // op by another one.
  KernelNames forced_kernels = {};
  bool is_body = false;     // whether the plan is the body of a loop or branch
  bool is_segment = false;  // whether the program has other plans, which run before or after

  // Returns the kernel that is forced on ops of this type, or "" if none is.
  std::string_view ForcedKernel(const std::string& type) const;
};

}  // namespace skiff
