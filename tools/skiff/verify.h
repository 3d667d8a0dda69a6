// skiff verify: checks whether Skiff can run a saved program.
#pragma once

#include "framework/command_line/command_line.h"

namespace skiff {

Subcommand VerifySubcommand();

}  // namespace skiff
