// skiff convert: models of other formats as saved models, and saved models as files of other
// formats.
#pragma once

#include "framework/command_line/command_line.h"

namespace skiff {

Subcommand ConvertSubcommand();

}  // namespace skiff
