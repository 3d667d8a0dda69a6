// The functions of skiff::layers.
//
// What holds for all of them: they append ops to the current block (program_guard.h) and return the
// variables that these write. They throw an Error (kInvalidArgument), which starts with the
// caller's file and line, if an input is undefined, belongs to another program or isn't visible in
// the current block. They throw an Error if the definition of an op refuses its inputs or
// attributes. The headers name other errors only.
#pragma once

#include <source_location>

namespace skiff::layers {

using Site = std::source_location;

}  // namespace skiff::layers
