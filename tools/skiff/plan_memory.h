// skiff plan_memory: assigns offsets to the buffers of a CSV file.
#pragma once

#include "framework/command_line/command_line.h"

namespace skiff {

Subcommand PlanMemorySubcommand();

}  // namespace skiff
