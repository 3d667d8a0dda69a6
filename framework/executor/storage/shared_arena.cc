#include "framework/executor/storage/shared_arena.h"

#include <utility>

#include "memory/places.h"

namespace skiff {

SharedArena::SharedArena(std::shared_ptr<DeviceLink> link) : link_(std::move(link)) {
  host_.allocator = &link_->host_allocator();
  host_.view = std::make_shared<Buffer>(nullptr, 0, host_.place);
  if (!link_->has_device()) return;
  device_.place = link_->place();
  device_.allocator = &link_->device().allocator();
  device_.view = std::make_shared<Buffer>(nullptr, 0, device_.place);
}

void SharedArena::Reserve(Place place, int64_t bytes) {
  Part& part = place.is_cpu() ? host_ : device_;
  if (bytes == 0 || (part.owned != nullptr && part.owned->bytes() >= bytes)) return;
  // First, so that the two never take memory at once. Work in the stream may still use it.
  if (part.owned != nullptr) link_->Wait();
  GiveBack(&part);
  part.owned =
      std::make_unique<Buffer>(*part.allocator, bytes, AllocationOptions{.tag = MemoryTag::kArena});
  part.view = std::make_shared<Buffer>(part.owned->data(), part.owned->bytes(), part.place);
}

const std::shared_ptr<TensorArray>& SharedArena::Array(const std::string& name, Place place) {
  std::shared_ptr<TensorArray>& array = arrays_[{name, place.is_cpu()}];
  if (array == nullptr) array = std::make_shared<TensorArray>(place);
  return array;
}

const std::shared_ptr<Buffer>& SharedArena::FeedCopy(const std::string& name, int64_t bytes) {
  std::shared_ptr<Buffer>& copy = feed_copies_[name];
  if (copy == nullptr || copy->bytes() < bytes) {
    copy.reset();
    copy = std::make_shared<Buffer>(AllocatorOf(Place::Cpu()), bytes,
                                    AllocationOptions{.tag = MemoryTag::kFeedOrFetch});
  }
  return copy;
}

void SharedArena::GiveBack(Part* part) {
  part->owned.reset();
  part->view = std::make_shared<Buffer>(nullptr, 0, part->place);
}

ArenaUse::ArenaUse(std::shared_ptr<SharedArena> arena) : arena_(std::move(arena)) {
  ++arena_->uses_;
}

ArenaUse::~ArenaUse() {
  if (--arena_->uses_ > 0) return;
  arena_->link_->WaitQuietly();
  arena_->GiveBack(&arena_->host_);
  arena_->GiveBack(&arena_->device_);
  arena_->arrays_.clear();
  arena_->feed_copies_.clear();
}

}  // namespace skiff
