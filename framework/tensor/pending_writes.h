// Background work that may still be writing tensors in host memory, or using tensors of a device,
// after the call that started it has returned.
#pragma once

namespace skiff {

namespace internal {

class PendingWrites {
 public:
  virtual ~PendingWrites() = default;
  // Blocks until all work submitted so far is done. Throws the Error of any work that failed since
  // the last call.
  virtual void Wait() = 0;
};

}  // namespace internal
using internal::PendingWrites;

}  // namespace skiff
