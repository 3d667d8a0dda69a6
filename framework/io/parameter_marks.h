// The marks of parameters in programs that Fluid saved.
#pragma once

#include "framework/ir/program.h"

namespace skiff {

// Fluid's savers remove the marks of parameters. If no variable of the program has one, marks the
// float persistables that ops read and none writes.
void RestoreParameterMarks(const Program& program);

}  // namespace skiff
