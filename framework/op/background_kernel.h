// Kernels that write outputs in host memory in the background, after Run has returned.
#pragma once

#include "framework/op/kernel.h"
#include "framework/tensor/pending_writes.h"

namespace skiff {

// Runs execute in the order in which they were submitted, across all kernels that share one
// pending(). The destructor waits for them. Run throws the Error of an earlier run that failed;
// runs submitted behind the failed one do nothing until the Error has been thrown.
class BackgroundKernel : public Kernel {
 public:
  // Returns what to wait for before anything else reads or writes the outputs. It outlives the
  // kernel and every scope.
  virtual PendingWrites* pending() const = 0;
};

}  // namespace skiff
