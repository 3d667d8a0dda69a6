// What the plans of an executor share to run on a device: a stream, and notes on the work in the
// stream that the host must know of. Plans on the CPU have a link without a device.
//
// Memory that the stream uses is given back only after a wait, since the allocators know nothing of
// the stream.
#pragma once

#include <memory>

#include "framework/base/place.h"
#include "framework/base/steady_seconds.h"
#include "framework/tensor/device_context.h"
#include "framework/tensor/pending_writes.h"
#include "framework/tensor/tensor.h"
#include "memory/device.h"
#include "memory/places.h"

namespace skiff {

class Communicator;

class DeviceLink {
 public:
  // Throws the Errors of DeviceOf, and Error (kIo) if the device gives no stream.
  explicit DeviceLink(Place place)
      : place_(place), device_(&DeviceOf(place)), stream_(device_->MakeStream()) {}
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  // Returns the link of all plans on the CPU. Without a device there is nothing to wait for and
  // nothing to note: all functions return at once and change nothing, so threads share the link.
  static const std::shared_ptr<DeviceLink>& Host();

  bool has_device() const { return device_ != nullptr; }
  Place place() const { return place_; }
  // Only if it has a device.
  Device& device() const { return *device_; }
  DeviceStream& stream() const { return *stream_; }
  // Where kernels of the place issue their work.
  DeviceContext context() const { return {place_, stream_.get()}; }
  // Returns the allocator of memory on the CPU that the stream copies from and to.
  Allocator& host_allocator() const;
  // Returns an event of the device; nullptr, which the next functions accept, if there is none.
  std::unique_ptr<DeviceEvent> MakeEvent() const;
  void Record(DeviceEvent* event) {
    if (has_device()) stream_->Record(event);
  }

  // Notes that a run has returned, but that the stream still has work of it.
  void NoteUnfinishedRun() {
    if (has_device()) unfinished_run_.is_there = true;
  }
  // Its Wait waits for the stream if there is an unfinished run. nullptr without a device.
  PendingWrites* unfinished_run() { return has_device() ? &unfinished_run_ : nullptr; }
  // Notes that the stream holds copies from or to arenas on the CPU.
  void NoteUseOfHost() {
    if (has_device()) uses_host_ = true;
  }
  // Must come before the host reads or writes such an arena: waits if the stream may still use it.
  void AwaitHost() {
    if (uses_host_) Wait();
  }
  // Notes work that waits for other ranks, in the stream or in a stream for which it waits. From
  // now on, until a wait throws, waits ask the communicator whether the ranks still come, and throw
  // the Errors of Communicator::CheckWait: a wait ends at the communicator's time limit. nullptr:
  // no longer.
  void NoteRanks(Communicator* communicator);
  // Waits for the stream. Throws Error (kIo) if something in it failed.
  void Wait() {
    if (has_device()) WaitForStream();
  }
  // Waits for an event of the stream. Throws Error (kIo) as Wait does.
  void Await(DeviceEvent* event);
  // Returns the time on a clock that stops in all these waits; 0 without a device.
  double WorkingSeconds() const { return has_device() ? SteadySeconds() - waited_seconds_ : 0; }
  // Waits, and passes over a failure: for destructors, and while another Error is under way. A
  // failure of an unfinished run is left to the next Wait: a device that has failed says so in each
  // call.
  void WaitQuietly() noexcept;

  // Copies a tensor to a tensor of as many bytes: from the CPU at once, after the stream has used
  // the arenas there; from the device in the stream. Throws Error (kIo) as Wait does, or if the
  // device refuses.
  void Copy(const Tensor& from, Tensor* to);

 private:
  struct UnfinishedRun final : PendingWrites {
    explicit UnfinishedRun(DeviceLink* stream_owner) : link(stream_owner) {}
    void Wait() override {
      if (is_there) link->Wait();
    }
    DeviceLink* link;
    bool is_there = false;
  };

  DeviceLink() = default;  // of the CPU
  void WaitForStream();
  void AwaitRanks(DeviceEvent* event);

  const Place place_ = Place::Cpu();
  Device* const device_ = nullptr;
  std::unique_ptr<DeviceStream> stream_;
  UnfinishedRun unfinished_run_{this};
  bool uses_host_ = false;
  Communicator* ranks_ = nullptr;             // since NoteRanks
  std::unique_ptr<DeviceEvent> ranks_event_;  // after their work
  double waited_seconds_ = 0;
};

}  // namespace skiff
