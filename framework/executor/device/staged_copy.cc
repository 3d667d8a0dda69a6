#include "framework/executor/device/staged_copy.h"

#include <cstring>

#include "framework/base/error.h"

namespace skiff {

StagedCopy::StagedCopy(DeviceLink* link, int64_t bytes) : link_(*link), stages_(2) {
  for (Stage& stage : stages_) {
    stage.memory = std::make_unique<Buffer>(link_.device().pinned_allocator(), bytes,
                                            AllocationOptions{.tag = MemoryTag::kFeedOrFetch});
    stage.copied = link_.device().MakeEvent();
  }
}

void StagedCopy::Copy(void* to, const void* from, size_t bytes) {
  Stage& stage = stages_[next_];
  SKIFF_ENFORCE(static_cast<int64_t>(bytes) <= stage.memory->bytes(), kFailedPrecondition,
                "a staged copy of ", bytes, " bytes: expected at most ", stage.memory->bytes());
  link_.Await(stage.copied.get());
  std::memcpy(stage.memory->data(), from, bytes);
  link_.stream().Copy(to, link_.place(), stage.memory->data(), Place::Cpu(), bytes);
  link_.stream().Record(stage.copied.get());
  next_ = (next_ + 1) % stages_.size();
}

}  // namespace skiff
