// The options in $SKIFF_CUDA_EMULATION, as "seed=7,late_us=0": with different options, runs find
// code that only happens to work.
#pragma once

#include <cstdint>

namespace skiff::cuda_emulation {

struct Options {
  // Draws the orders in which blocks, and threads between barriers, run; each launch has its own.
  // 0: all run as they are numbered. By default 1 in the first shard of a test, 2 in the second, ….
  uint64_t seed = 1;
  // If nobody waits for a stream, its work begins so many microseconds after the idle stream was
  // given it: the host's actions without waiting happen first.
  int64_t late_us = 1000;
  // The host can't touch the device's memory while no stream runs kernels.
  bool hides_memory = true;
  // Whether each access of a kernel is checked, which takes most of the time.
  bool checks_accesses = true;
  // Whether these checks look for races, too.
  bool finds_races = true;
  // Whether there are cuBLASLt and cuDNN: stand-ins (libraries/libraries.h).
  bool has_libraries = false;
  // Whether there is NCCL: a stand-in, too.
  bool has_nccl = true;
  // Which operation of NCCL fails, counted from 1 as they begin on devices: it and all that wait
  // for it never end, unless their communicator is aborted. 0: none.
  uint64_t nccl_fails_at = 0;
  // How many devices there are, 1 to 16.
  uint64_t devices = 2;
  // Bytes of a device's memory.
  uint64_t memory_bytes = uint64_t{8} << 30;
};

// Returns the options. The first call reads them; an option that can't be read ends the process
// with a message.
const Options& TheOptions();

}  // namespace skiff::cuda_emulation
