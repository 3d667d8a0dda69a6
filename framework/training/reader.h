// The source of a training's batches.
//
//   reader.StartEpoch(3);
//   while (reader.Next(&batch)) step.Run(batch.feeds, {loss});
//
// A reader is deterministic: its batches depend only on its options (including a seed) and on the
// epoch. It can be resumed: a reader that restores another one's state continues with the batch
// that would have come next there. SampleReader reads numbered samples; PrefetchingReader lets any
// reader read ahead; ShardedReader shares the batches of any reader among ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/api/dtype.h"
#include "framework/executor/executor.h"
#include "framework/tensor/api/shape.h"
#include "framework/tensor/api/tensor.h"

namespace skiff::training {

struct Batch {
  FeedList feeds = {};  // by the names of the variables that they feed; the same in each batch
  int64_t samples = 0;  // the weight of the batch in means over an epoch
  // Of a ShardedReader: how many batches of the run are those of the next epoch.
  int64_t from_next_epoch = 0;

  // Returns the tensor that is fed to `name`. Throws an Error (kNotFound) if there is none.
  const Tensor& feed(std::string_view name) const;
};

struct FeedShape {
  std::string name = {};
  Shape shape = {};
  DType dtype = DType::kFloat32;
  friend bool operator==(const FeedShape&, const FeedShape&) = default;
};

// The position of a reader, as text by name. Checkpoints hold it.
using ReaderState = std::map<std::string, std::string>;

// One thread uses a reader.
class Reader {
 public:
  virtual ~Reader() = default;

  // Goes to the first batch of an epoch, counted from 0. Throws an Error (kOutOfRange) for a
  // negative one.
  virtual void StartEpoch(int64_t epoch) = 0;
  // Puts the next batch of the epoch into *batch and returns true, or returns false after the last
  // one. May use the storage of *batch again. After an Error the reader is where it was, and
  // another call tries the same batch again.
  virtual bool Next(Batch* batch) = 0;
  // Passes over the next `count` batches of the epoch, or over all that are left if there are
  // fewer. Returns how many it has passed over. Throws an Error (kOutOfRange) for a negative count,
  // and what Next throws; then the reader may have passed over some of the batches.
  int64_t Skip(int64_t count);

  // Returns what Restore needs to go on after the last batch that Next returned or Skip passed
  // over. "epoch" is the number of the epoch.
  virtual ReaderState state() const = 0;
  // Throws an Error (kDataLoss) unless the state is from a reader with these options. After an
  // Error the reader is where it was.
  virtual void Restore(const ReaderState& state) = 0;

  // Returns the number of batches of the epoch where the reader is.
  virtual int64_t batches_in_epoch() const = 0;
  // Returns the feeds of each kind of batch that Next may give, or nothing if that isn't known in
  // advance.
  virtual std::vector<std::vector<FeedShape>> batch_shapes() const { return {}; }
  // Returns how many ranks share the batches; 1 unless there is a ShardedReader.
  virtual int32_t ranks() const { return 1; }

 private:
  // As Skip, of a count that isn't negative. Readers that know the number of the next batch needn't
  // read the batches.
  virtual int64_t PassOver(int64_t count);
};

}  // namespace skiff::training
