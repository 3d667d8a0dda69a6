// Checks of the options that a program is compiled with.
#pragma once

#include "framework/base/place.h"
#include "framework/executor/api/compile_options.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

// Checks the options of a program that runs on `place`. Throws an Error that names the option, the
// value found and the value expected: kNotFound for a kernel or a variable that doesn't exist,
// kInvalidArgument for values and combinations that make no sense and for a tuner of another
// registry.
void CheckCompileOptions(const OpRegistry& registry, const Program& program, Place place,
                         const CompileOptions& options);

}  // namespace skiff
