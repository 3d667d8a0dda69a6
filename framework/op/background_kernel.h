// Kernels whose outputs in the memory of the host are still being written when Run is back.
#pragma once

#include "framework/op/kernel.h"
#include "framework/tensor/pending_writes.h"

namespace skiff {

// Runs follow each other in the order in which they were given, also those of different kernels
// with one pending(). The destructor waits. Run throws the Error of an earlier run that failed.
class BackgroundKernel : public Kernel {
 public:
  // What to wait for before the outputs are read, or written by others. It outlives the kernel, and
  // every scope.
  virtual PendingWrites* pending() const = 0;
};

}  // namespace skiff
