// skiff memory: what the arena of a model's step takes, by policy, and who holds it.
#pragma once

#include "framework/command_line/command_line.h"

namespace skiff {

Subcommand MemorySubcommand();

}  // namespace skiff
