#include "framework/executor/device/device_link.h"

#include "framework/base/error.h"
#include "framework/executor/device/rank_wait.h"
#include "memory/allocator.h"

namespace skiff {

const std::shared_ptr<DeviceLink>& DeviceLink::Host() {
  static const auto& host = *new std::shared_ptr<DeviceLink>(new DeviceLink());
  return host;
}

Allocator& DeviceLink::host_allocator() const {
  return has_device() ? device_->pinned_allocator() : AllocatorOf(Place::Cpu());
}

std::unique_ptr<DeviceEvent> DeviceLink::MakeEvent() const {
  return has_device() ? device_->MakeEvent() : nullptr;
}

void DeviceLink::NoteRanks(Communicator* communicator) {
  if (!has_device()) return;
  ranks_ = communicator;
  if (ranks_ != nullptr && ranks_event_ == nullptr) ranks_event_ = MakeEvent();
}

void DeviceLink::AwaitRanks(DeviceEvent* event) {
  try {
    AwaitEvent(event, ranks_);
  } catch (const Error&) {
    // The work that waits for ranks ends now, so that the next wait ends, too.
    ranks_ = nullptr;
    throw;
  }
}

void DeviceLink::WaitForStream() {
  unfinished_run_.is_there = false;
  uses_host_ = false;
  const double start = SteadySeconds();
  if (ranks_ != nullptr) {
    stream_->Record(ranks_event_.get());
    AwaitRanks(ranks_event_.get());
  }
  stream_->Wait();
  waited_seconds_ += SteadySeconds() - start;
}

void DeviceLink::Await(DeviceEvent* event) {
  if (!has_device()) return;
  const double start = SteadySeconds();
  if (ranks_ != nullptr) AwaitRanks(event);
  event->Wait();
  waited_seconds_ += SteadySeconds() - start;
}

void DeviceLink::WaitQuietly() noexcept {
  const bool is_unfinished = unfinished_run_.is_there;
  try {
    Wait();
  } catch (const Error&) {
    unfinished_run_.is_there = is_unfinished;
  }
}

void DeviceLink::Copy(const Tensor& from, Tensor* to) {
  if (from.place().is_cpu()) {
    AwaitHost();
    return CopyTensor(from, to);
  }
  stream_->Copy(to->raw_data(), to->place(), from.raw_data(), from.place(),
                static_cast<size_t>(from.byte_count()));
}

}  // namespace skiff
