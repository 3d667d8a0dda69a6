// Moves bytes between ranks.
//
// A communicator knows no formula: operators/collective makes sums and gathers of its messages.
// A communicator moves memory on the CPU (MPI between processes, or threads of one process) or on
// a device (NCCL).
//
// All ranks call Exchange and Sum in the same order, with messages that fit each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "framework/base/api/dtype.h"
#include "framework/base/place.h"
#include "framework/comm/world.h"

namespace skiff {

class DeviceStream;

// A message to a rank, and a message from a rank. `bytes` may be 0.
struct OutMessage {
  int32_t to = 0;
  const void* data = nullptr;
  int64_t bytes = 0;
};
struct InMessage {
  int32_t from = 0;
  void* data = nullptr;
  int64_t bytes = 0;
};

// One thread at a time uses a communicator. While a plan runs, the communication stream of its
// program (CommLink) may use it; that stream is idle when the run is over, and others may use it.
class Communicator {
 public:
  explicit Communicator(World world) : world_(std::move(world)) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const World& world() const { return world_; }
  // Returns where the memory of all messages is.
  virtual Place place() const = 0;

  // Sends and receives all messages. A message to the rank itself must have a message from the rank
  // itself, and is a copy. At most one message goes from a rank to another; its receiver expects
  // just as many bytes. Memory of `in` overlaps neither other memory of `in` nor memory of `out`.
  //
  // On the CPU, `stream` is nullptr and the messages have arrived on return. On a device, the call
  // appends the work to the stream.
  //
  // Throws an Error (kIo) if a rank has ended or aborted, if a message has other bytes than its
  // receiver expects, and if there is no progress for the time limit of the communicator; the Error
  // names the ranks, the limit and the activity. Throws an Error (kInvalidArgument) for messages
  // that a call can't have. After an Error (kIo), nothing but Abort and Check may be called.
  virtual void Exchange(std::span<const OutMessage> out, std::span<const InMessage> in,
                        DeviceStream* stream) = 0;
  // Replaces each of `count` numbers by its sum over all ranks. The library that moves the bytes
  // chooses the order of the summands, so the last bits may differ from run to run; all ranks get
  // the same bits. float32 and float64; on a device float16 and bfloat16, too, which may be rounded
  // after each addition. Throws what Exchange throws, and an Error (kUnimplemented) for other
  // dtypes.
  virtual void Sum(void* data, int64_t count, DType dtype, DeviceStream* stream) = 0;

  // Throws if a rank has aborted, if Exchange or Sum has thrown before, and if work of a stream has
  // failed.
  virtual void Check() = 0;
  // A host that waits for a stream must call it now and then: if a rank doesn't come any more, the
  // work of a stream ends only after an Error. Does what Check does. On a device it also throws an
  // Error (kIo) if `waited_seconds`, the seconds of the host's wait so far, are above the time
  // limit of the communicator; the Error names the limit, and the activity of the last call that
  // has given work to a stream. After an Error, all work that waits for other ranks ends.
  virtual void CheckWait(double waited_seconds);
  // Ends the work of all ranks after a failure of this rank: calls of the other ranks throw, or
  // their processes end with a status other than 0. Prints `message` to stderr, behind Text() of
  // the world. Returns, unless the process has to end with the call.
  virtual void Abort(const std::string& message) noexcept = 0;

  // Sets what the rank does now, such as "c_allreduce_sum of fc_0.w_0@GRAD, step 812", for the
  // Errors of Exchange and Sum. nullptr: nothing that has a name. The text must live until the next
  // call. On a device, Errors about the work say it, too, when the call has long returned.
  void set_activity(const std::string* activity) { activity_ = activity; }
  const std::string* activity() const { return activity_; }
  // Returns the bytes that this rank has sent to other ranks so far, by Exchange alone.
  int64_t bytes_sent() const { return bytes_sent_; }

 protected:
  // Returns " in ACTIVITY", or "" if there is none.
  std::string ActivityText() const;
  void CountSent(std::span<const OutMessage> out);

 private:
  const World world_;
  const std::string* activity_ = nullptr;
  int64_t bytes_sent_ = 0;
};

}  // namespace skiff
