// The communication stream of a program (PlanStream): collective kernels run in it beside the
// other instructions. On a device it is a second stream. On the CPU it is a thread with one OpenMP
// thread, since the other instructions have the cores.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "framework/executor/device/device_link.h"
#include "framework/tensor/device_context.h"
#include "framework/transpiler/api/data_parallel_options.h"

namespace skiff {

// The thread that runs a plan uses it. Between Finish, or WaitQuietly, and the next Issue the
// communication stream is idle, so that others may use the communicator.
class CommLink {
 public:
  // Runs a kernel, or issues its work to a device.
  using Work = std::function<void()>;

  virtual ~CommLink() = default;
  CommLink(const CommLink&) = delete;
  CommLink& operator=(const CommLink&) = delete;

  // Returns where kernels of the stream issue their work.
  virtual DeviceContext context() const = 0;

  // Appends work to the stream. It begins when all earlier work of both streams has ended, and ends
  // beside the later work of the main stream. `follows_main`: whether the main stream was given
  // work since the last call. On a device, calls `work` at once and throws what it throws. All that
  // `work` uses must stay until Finish or WaitQuietly.
  virtual void Issue(Work work, bool follows_main) = 0;
  // Makes the main stream's later work wait until the first `count` pieces of work since the last
  // Finish or WaitQuietly have ended; on the CPU, waits. Throws the Error of the first
  // failed piece. No work after a failure runs. The host doesn't wait for a device, and hears
  // of its failures as of those of the main stream.
  virtual void Await(size_t count) = 0;
  // Await for all work, and then forgets it.
  virtual void Finish() = 0;
  // The host waits for all work, and passes over a failure.
  virtual void WaitQuietly() noexcept = 0;

 protected:
  CommLink() = default;
};

// Returns the communication stream beside the main stream of `link`, which must outlive it. On a
// device, the kernels use the communicator `of_device`.
std::unique_ptr<CommLink> MakeCommLink(DeviceLink* link,
                                       std::shared_ptr<Communicator> of_device = nullptr);

// Returns whether collective instructions on `place` get a stream of their own: not without other
// ranks. If the options leave it open, a rank on the CPU needs at least 4 cores for that
// (CoresOfRank).
bool OverlapsCollectives(const DataParallelOptions& options, Place place);

}  // namespace skiff
