#include "framework/executor/device/device_link.h"

#include "framework/base/error.h"
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

void DeviceLink::WaitForStream() {
  unfinished_run_.is_there = false;
  uses_host_ = false;
  const double start = SteadySeconds();
  stream_->Wait();
  waited_seconds_ += SteadySeconds() - start;
}

void DeviceLink::Await(DeviceEvent* event) {
  if (!has_device()) return;
  const double start = SteadySeconds();
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
