// skiff summary: the layers of a saved program, with outputs, parameters and FLOP.
#pragma once

#include "framework/command_line/command_line.h"

namespace skiff {

Subcommand SummarySubcommand();

}  // namespace skiff
