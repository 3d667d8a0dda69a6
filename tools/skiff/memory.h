// skiff memory: reports the arena of a model's step by policy, and the tensors that it holds.
#pragma once

#include "framework/command_line/command_line.h"

namespace skiff {

Subcommand MemorySubcommand();

}  // namespace skiff
