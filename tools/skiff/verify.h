// skiff verify: whether Skiff can run a saved program, and what is odd about it.
#pragma once

#include "framework/command_line/command_line.h"

namespace skiff {

Subcommand VerifySubcommand();

}  // namespace skiff
