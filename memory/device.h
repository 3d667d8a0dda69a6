// Devices: their memory, and the streams that they work off. The CPU isn't one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/base/place.h"
#include "memory/allocator.h"

namespace skiff {

// A point in a stream.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Waits until all has run that the stream held when the event was recorded last; returns at once
  // if it never was. Throws Error (kIo) if something of it failed.
  virtual void Wait() = 0;
  // Returns whether Wait would return at once. Throws Error (kIo) as Wait does.
  virtual bool HasPassed() = 0;
  // Returns the seconds that the device took from `earlier`, another event of the same device, to
  // this event. Both have been recorded and have passed.
  virtual double SecondsSince(const DeviceEvent& earlier) const = 0;
};

// Work that a stream has captured, with its addresses. A stream of the same device may launch it
// any number of times; each must have ended before the graph is destroyed.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
};

// A queue of work that a device runs in order, while the host goes on. Streams wait for each other
// only where WaitFor says so. One thread at a time uses a stream, whatever device is current for
// the thread. The destructor waits for the work.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // Returns what the device's own interface knows the stream by: a cudaStream_t.
  virtual void* handle() const = 0;
  // Append a copy, and a fill. Until the work has run, memory must stay allocated, and the host's
  // source of a copy unchanged. A copy is only asynchronous if the host's memory is page-locked
  // (Device::pinned_allocator). Both places are the CPU or the stream's device. Throw Error (kIo)
  // if the device refuses.
  virtual void Copy(void* to, Place to_place, const void* from, Place from_place, size_t bytes) = 0;
  virtual void Fill(void* to, unsigned char byte, size_t bytes) = 0;
  virtual void Record(DeviceEvent* event) = 0;
  // Makes the work that is appended from now on wait for the work in the event's stream at the last
  // recording of the event, or for nothing if the event was never recorded. Another stream of the
  // device may have recorded it. The host doesn't wait.
  virtual void WaitFor(const DeviceEvent& event) = 0;
  // Appends a call of the host's `function`, on a thread of the device's choice. Work that is
  // appended later waits until it has returned. It must neither throw nor use a device, and
  // `argument` must live until then.
  virtual void Call(void (*function)(void* argument), void* argument) = 0;
  // Appends the work of a graph.
  virtual void Launch(const DeviceGraph& graph) = 0;
  // From BeginCapture on, work that is appended goes to a graph instead of being run, until
  // EndCapture returns that. In between, the host may not wait, and Record and WaitFor throw Error
  // (kFailedPrecondition). Arguments of Call must then live as long as the graph. The stream is as
  // before after EndCapture, also if it throws Error (kIo): some of the work can't be captured.
  virtual void BeginCapture() = 0;
  virtual std::unique_ptr<DeviceGraph> EndCapture() = 0;
  // Waits until everything has run. Throws Error (kIo) if something of it failed.
  virtual void Wait() = 0;
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual Allocator& allocator() = 0;
  // Returns the process-wide allocator of page-locked memory of the CPU, which the device copies to
  // and from asynchronously. A block used by copies on a stream needs Allocator::RecordUse, unless
  // its owner waits for the copies before it frees the block.
  virtual Allocator& pinned_allocator() = 0;
  virtual std::unique_ptr<DeviceStream> MakeStream() = 0;
  virtual std::unique_ptr<DeviceEvent> MakeEvent() = 0;
  // Waits for all streams, copies, and waits for the copy. A place may be another device of the
  // same kind, whose streams it then waits for, too. Throws Error (kIo) if a device refuses, or if
  // earlier work failed.
  virtual void CopyNow(void* to, Place to_place, const void* from, Place from_place,
                       size_t bytes) = 0;

 private:
  friend class DeviceUse;
  // Makes the device the calling thread's current one. Returns the number of the device that was
  // current before, which Leave makes current again. Throws Error (kIo) if the device refuses.
  virtual int32_t Enter() { return 0; }
  virtual void Leave(int32_t /*outer*/) noexcept {}
};

// While it lives, a device is the calling thread's current one: kernels and the device's libraries
// run on the current device, and a thread begins with the first device. Afterwards, the device that
// was current before is current again. Nothing else in this header needs it.
class DeviceUse {
 public:
  // nullptr, for the CPU: changes nothing.
  explicit DeviceUse(Device* device)
      : device_(device), outer_(device == nullptr ? 0 : device->Enter()) {}
  ~DeviceUse() {
    if (device_ != nullptr) device_->Leave(outer_);
  }
  DeviceUse(const DeviceUse&) = delete;
  DeviceUse& operator=(const DeviceUse&) = delete;

 private:
  Device* const device_;
  const int32_t outer_;
};

}  // namespace skiff
