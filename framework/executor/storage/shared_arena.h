// The memory that the plans of a program share, since only one plan runs at a time: an arena on the
// program's place, on a device a second arena on the CPU, arrays for values whose sizes only a run
// tells, and copies of feeds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/place.h"
#include "framework/executor/device/device_link.h"
#include "framework/tensor/tensor_array.h"
#include "memory/allocator.h"

namespace skiff {

class SharedArena {
 public:
  // `link`: to the place of the program.
  explicit SharedArena(std::shared_ptr<DeviceLink> link);

  // Makes the arena of a place hold at least `bytes`. If the arena grows, its contents are lost.
  // Throws an Error (kResourceExhausted) if there is no memory; the arena is empty then. Throws
  // Error (kIo) if work of the device has failed; nothing has changed then.
  void Reserve(Place place, int64_t bytes);

  // Returns the memory of a place, never nullptr. Tensors on the buffer don't keep the memory
  // alive. The buffer is a new object whenever the arena has grown.
  const std::shared_ptr<Buffer>& memory(Place place) const { return PartOf(place).view; }

  // Returns the array of this name on a place, which is made if it isn't there. Its contents are
  // lost when another plan runs.
  const std::shared_ptr<TensorArray>& Array(const std::string& name, Place place);

  // Returns memory on the CPU for a copy of the feed of this name, of at least `bytes`. Its
  // contents are lost when another plan runs. A later call for more bytes returns other memory; the
  // plan that has the old memory keeps that alive. Throws an Error (kResourceExhausted) if there is
  // no memory.
  const std::shared_ptr<Buffer>& FeedCopy(const std::string& name, int64_t bytes);

 private:
  friend class ArenaUse;

  struct Part {
    Place place;
    Allocator* allocator = nullptr;
    std::unique_ptr<Buffer> owned = {};
    std::shared_ptr<Buffer> view = {};
  };

  const Part& PartOf(Place place) const { return place.is_cpu() ? host_ : device_; }
  // Gives the memory back. No work in the stream may use it any more.
  static void GiveBack(Part* part);

  std::shared_ptr<DeviceLink> link_;
  int64_t uses_ = 0;
  Part host_;
  Part device_;  // without an allocator on the CPU
  // By name, and whether on the CPU.
  std::map<std::pair<std::string, bool>, std::shared_ptr<TensorArray>> arrays_;
  std::map<std::string, std::shared_ptr<Buffer>> feed_copies_;
};

// A plan's use of an arena. The last use gives the memory back.
class ArenaUse {
 public:
  explicit ArenaUse(std::shared_ptr<SharedArena> arena);
  ~ArenaUse();
  ArenaUse(const ArenaUse&) = delete;
  ArenaUse& operator=(const ArenaUse&) = delete;

  SharedArena* operator->() const { return arena_.get(); }

 private:
  std::shared_ptr<SharedArena> arena_;
};

}  // namespace skiff
