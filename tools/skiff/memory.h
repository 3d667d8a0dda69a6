// skiff memory: reports the arena of a model's step by policy, and what takes it.
#pragma once

#include "framework/command_line/command_line.h"

namespace skiff {

Subcommand MemorySubcommand();

}  // namespace skiff
