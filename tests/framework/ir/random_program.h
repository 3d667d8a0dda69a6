// Programs that hold everything a descriptor can hold. They mean nothing: no op of theirs exists.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/ir/program.h"

namespace skiff {

struct RandomProgramOptions {
  // Only parts that the file format has a place for.
  bool storable = false;
};

// The same program for the same seed.
std::unique_ptr<Program> RandomProgram(uint32_t seed, RandomProgramOptions options = {});

}  // namespace skiff
