// Copies from memory of the host that may change at once to a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/executor/device/device_link.h"
#include "memory/allocator.h"

namespace skiff {

// Two buffers of page-locked memory in turn: the host fills one while the device still copies the
// other.
class StagedCopy {
 public:
  // Takes memory for copies of up to `bytes`. Throws Error (kResourceExhausted) if there is none.
  // The link must outlive the object, which must outlive the copies in its stream.
  StagedCopy(DeviceLink* link, int64_t bytes);

  // Appends a copy to the stream, and lets go of `from`. Waits for the copy before the last one.
  // Throws Error (kIo) if the device refuses.
  void Copy(void* to, const void* from, size_t bytes);

 private:
  struct Stage {
    std::unique_ptr<Buffer> memory;
    std::unique_ptr<DeviceEvent> copied;
  };

  DeviceLink& link_;
  std::vector<Stage> stages_;
  size_t next_ = 0;
};

}  // namespace skiff
