// What the plans of an executor share to run on a device: its stream, and what the host must know
// of the work in it.
//
// Memory that the stream uses is given back only after a wait, since the allocators know nothing of
// the stream.
#pragma once

#include <memory>

#include "framework/base/error.h"
#include "framework/base/place.h"
#include "framework/base/steady_seconds.h"
#include "framework/tensor/pending_writes.h"
#include "memory/device.h"
#include "memory/places.h"

namespace skiff {

class DeviceLink {
 public:
  // Throws what DeviceOf throws, and Error (kIo) if the device gives no stream.
  explicit DeviceLink(Place place)
      : place_(place), device_(DeviceOf(place)), stream_(device_.MakeStream()) {}
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  Place place() const { return place_; }
  Device& device() const { return device_; }
  DeviceStream& stream() const { return *stream_; }

  // Notes that a run has returned, but that the stream still has work of it.
  void NoteUnfinishedRun() { unfinished_run_.is_there = true; }
  // Its Wait waits for the stream if there is an unfinished run.
  PendingWrites* unfinished_run() { return &unfinished_run_; }
  // Notes that the stream holds copies from or to arenas on the CPU.
  void NoteUseOfHost() { uses_host_ = true; }
  // Must come before the host reads or writes such an arena: waits if the stream may still use it.
  void AwaitHost() {
    if (uses_host_) Wait();
  }
  // Waits for the stream. Throws Error (kIo) if something in it failed.
  void Wait() {
    unfinished_run_.is_there = false;
    uses_host_ = false;
    const double start = SteadySeconds();
    stream_->Wait();
    waited_seconds_ += SteadySeconds() - start;
  }
  // Waits for an event of the stream. Throws Error (kIo) as Wait does.
  void Await(DeviceEvent* event) {
    const double start = SteadySeconds();
    event->Wait();
    waited_seconds_ += SteadySeconds() - start;
  }
  // The time that all waits so far have taken.
  double waited_seconds() const { return waited_seconds_; }
  // Waits, and passes over a failure: for destructors, and while another Error is under way. That
  // of an unfinished run is left to the next Wait: a device that has failed says so in each call.
  void WaitQuietly() noexcept {
    const bool is_unfinished = unfinished_run_.is_there;
    try {
      Wait();
    } catch (const Error&) {
      unfinished_run_.is_there = is_unfinished;
    }
  }

 private:
  struct UnfinishedRun final : PendingWrites {
    explicit UnfinishedRun(DeviceLink* stream_owner) : link(stream_owner) {}
    void Wait() override {
      if (is_there) link->Wait();
    }
    DeviceLink* link;
    bool is_there = false;
  };

  const Place place_;
  Device& device_;
  std::unique_ptr<DeviceStream> stream_;
  UnfinishedRun unfinished_run_{this};
  bool uses_host_ = false;
  double waited_seconds_ = 0;
};

}  // namespace skiff
