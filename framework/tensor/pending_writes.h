// Work that goes on writing tensors in the memory of the host when whoever gave it is back.
#pragma once

namespace skiff {

class PendingWrites {
 public:
  virtual ~PendingWrites() = default;
  // Returns when all that was given is done. Throws the Error of a work that failed since it was
  // called last.
  virtual void Wait() = 0;
};

}  // namespace skiff
