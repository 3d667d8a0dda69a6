// One long text as parallel streams, for training through time with a carried state.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/training/reader.h"

namespace skiff::models {

struct StreamReaderOptions {
  int64_t batch_size = 32;  // streams
  int64_t steps = 64;       // characters of a stream in a batch
};

// Cuts the text into batch_size streams of equal length, one behind the other; less than batch_size
// characters at the end of the text belong to none. Batch k has the k-th `steps` characters of each
// stream, the last batch the rest. So row b of a batch goes on where row b of the batch before
// ended. Feeds, T being the steps of the batch:
//
//   ids      [T, batch_size], int64
//   label    [T, batch_size, 1], int64: the next character of each
//   carried  [1], float32: 0 in the first batch of an epoch, where no state has been carried; then
//   1
//
// A batch counts T · batch_size samples. All epochs are the same.
class StreamReader final : public training::Reader {
 public:
  static constexpr const char* kIds = "ids";
  static constexpr const char* kLabel = "label";
  static constexpr const char* kCarried = "carried";

  // Begins at the start of epoch 0. The text outlives the reader. Throws an Error
  // (kInvalidArgument) for an option below 1, and for a text of less than batch_size + 1
  // characters.
  StreamReader(const std::vector<int64_t>* text, const StreamReaderOptions& options);

  void StartEpoch(int64_t epoch) override;
  bool Next(training::Batch* batch) override;
  training::ReaderState state() const override;
  void Restore(const training::ReaderState& state) override;
  int64_t batches_in_epoch() const override;
  std::vector<std::vector<training::FeedShape>> batch_shapes() const override;

 private:
  int64_t PassOver(int64_t count) override;
  std::vector<training::FeedShape> FeedsOf(int64_t steps) const;
  int64_t StepsOf(int64_t batch) const;

  const std::vector<int64_t>* text_;
  StreamReaderOptions options_;
  int64_t length_ = 0;  // of a stream
  int64_t epoch_ = 0;
  int64_t next_ = 0;  // the next batch
};

}  // namespace skiff::models
