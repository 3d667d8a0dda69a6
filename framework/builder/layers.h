// The functions of skiff::layers.
//
// All layers append ops to the current block (program_guard.h) and return the variables that these
// ops write. All layers throw an Error (kInvalidArgument), which starts with the caller's file and
// line, if an input is undefined, belongs to another program or isn't visible in the current block,
// and an Error if the definition of an op refuses inputs or attributes. The headers name other
// errors only.
#pragma once

#include <source_location>

namespace skiff::layers {

using Site = std::source_location;

}  // namespace skiff::layers
