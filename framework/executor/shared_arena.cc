#include "framework/executor/shared_arena.h"

#include <utility>

namespace skiff {

void SharedArena::Reserve(int64_t bytes) {
  if (owned_ != nullptr && owned_->bytes() >= bytes) return;
  // First, so that the two never take memory at once.
  Release();
  owned_ = std::make_unique<Buffer>(AllocatorOf(place_), bytes,
                                    AllocationOptions{.tag = MemoryTag::kArena});
  view_ = std::make_shared<Buffer>(owned_->data(), owned_->bytes(), place_);
}

const std::shared_ptr<TensorArray>& SharedArena::Array(const std::string& name) {
  std::shared_ptr<TensorArray>& array = arrays_[name];
  if (array == nullptr) array = std::make_shared<TensorArray>(place_);
  return array;
}

void SharedArena::Release() {
  owned_.reset();
  view_ = std::make_shared<Buffer>(nullptr, 0, place_);
}

ArenaUse::ArenaUse(std::shared_ptr<SharedArena> arena) : arena_(std::move(arena)) {
  ++arena_->uses_;
}

ArenaUse::~ArenaUse() {
  if (--arena_->uses_ > 0) return;
  arena_->Release();
  arena_->arrays_.clear();
}

}  // namespace skiff
