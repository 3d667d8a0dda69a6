// The memory that the plans of a program share, since one runs at a time: the arena, and arrays for
// what nobody knows the size of before a run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "framework/base/place.h"
#include "framework/tensor/tensor_array.h"
#include "memory/allocator.h"

namespace skiff {

class SharedArena {
 public:
  explicit SharedArena(Place place) : place_(place) {}

  // Makes the arena hold at least `bytes`. What it held is lost if it grows. Throws an Error
  // (kResourceExhausted) if there is no memory; the arena is empty then.
  void Reserve(int64_t bytes);

  // The memory, without a share in it: tensors on it don't keep it alive. A new object whenever the
  // arena has grown, never nullptr.
  const std::shared_ptr<Buffer>& memory() const { return view_; }

  // Returns the array of this name, which is made if it isn't there. What a plan leaves in it is
  // good until another plan runs.
  const std::shared_ptr<TensorArray>& Array(const std::string& name);

 private:
  friend class ArenaUse;

  void Release();

  Place place_;
  int64_t uses_ = 0;
  std::unique_ptr<Buffer> owned_;
  std::shared_ptr<Buffer> view_ = std::make_shared<Buffer>(nullptr, 0, place_);
  std::unordered_map<std::string, std::shared_ptr<TensorArray>> arrays_;
};

// A plan's use of an arena. The memory is given back with the last one.
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
