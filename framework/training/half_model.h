// Makes a program for inference in half (bfloat16 or float16) of one in float32, and values in the
// dtypes that such a program declares.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/precision/precision_options.h"
#include "framework/tensor/scope.h"

namespace skiff::training {

// Returns a copy of a float32 program without gradients that computes in half. `outputs` stay
// float32, so that whoever uses the model needn't know. Throws what RewriteForInference throws.
std::unique_ptr<Program> MakeHalfModel(const Program& model, const PrecisionOptions& precision,
                                       const std::vector<std::string>& outputs);

// Casts the program's persistables in the executor's scope to the dtypes that the program declares,
// where both dtypes are among float32, bfloat16 and float16.
void CastToDeclared(const Program& program, Executor* executor);

// Returns an executor on the CPU whose scope has the program's persistables in the dtypes that the
// program declares. The values are those of `scope`; where `scope` holds a parameter in half and
// its master weights, the master weights are rounded.
std::unique_ptr<Executor> ValuesFor(const Program& program, const Scope& scope);

}  // namespace skiff::training
