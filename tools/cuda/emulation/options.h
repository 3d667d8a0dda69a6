// $SKIFF_CUDA_EMULATION: what changes between runs to find what happens to work, as in
// "seed=7,late_us=0".
#pragma once

#include <cstdint>

namespace skiff::cuda_emulation {

struct Options {
  // Of the orders in which blocks, and threads between barriers, run; each launch draws its own. 0:
  // always as they are numbered. By default 1 in the first shard of a test, 2 in the second, ….
  uint64_t seed = 1;
  // Work begins so long after it was given to its stream, if nobody waits for it: what the
  // host does without waiting happens first.
  int64_t late_us = 1000;
  // Device memory can't be touched by the host while no work runs.
  bool hides_memory = true;
  // Each access to memory is checked, which takes most of the time; races are found on the way.
  bool checks_accesses = true;
  bool finds_races = true;
  // Whether there are cuBLASLt and cuDNN: stand-ins (libraries/libraries.h).
  bool has_libraries = false;
  // Bytes of the device's memory.
  uint64_t memory_bytes = uint64_t{8} << 30;
};

const Options& TheOptions();

}  // namespace skiff::cuda_emulation
