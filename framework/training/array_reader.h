// Batches of arrays in memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/training/reader.h"
#include "framework/training/sample_reader.h"
#include "framework/training/sample_source.h"

namespace skiff::training {

// Sample i is row i of each array.
class ArraySource final : public SampleSource {
 public:
  // Shares the memory of the arrays, which are given by the names of the variables that they feed.
  // Throws an Error (kInvalidArgument) if there is none, if two have one name, and for an array of
  // rank 0, with another number of rows than the first, with LoD, of selected rows, or that isn't
  // on the CPU.
  explicit ArraySource(FeedList arrays);

  int64_t size() const override { return arrays_[0].second.shape()[0]; }
  std::vector<FeedShape> fields() const override;
  void Read(int64_t sample, int64_t epoch, int64_t row, std::span<Tensor> fields) const override;

 private:
  FeedList arrays_;
};

// Reads the rows of arrays in batches, each array as [batch size, dims of a row …]. Order, last
// batch and state are those of a SampleReader with these options.
//
//   ArrayReader train({{"image", images}, {"label", labels}}, {.batch_size = 32, .shuffle = true});
class ArrayReader final : public Reader {
 public:
  // Begins at the start of epoch 0. Shares the memory of the arrays, which must not change while
  // the reader reads. Throws what ArraySource and SampleReader throw.
  explicit ArrayReader(FeedList arrays, const SampleReaderOptions& options = {})
      : source_(std::move(arrays)), reader_(&source_, options) {}
  // The SampleReader refers to the source.
  ArrayReader(const ArrayReader&) = delete;
  ArrayReader& operator=(const ArrayReader&) = delete;

  void StartEpoch(int64_t epoch) override { reader_.StartEpoch(epoch); }
  bool Next(Batch* batch) override { return reader_.Next(batch); }
  ReaderState state() const override { return reader_.state(); }
  void Restore(const ReaderState& state) override { reader_.Restore(state); }
  int64_t batches_in_epoch() const override { return reader_.batches_in_epoch(); }
  std::vector<std::vector<FeedShape>> batch_shapes() const override {
    return reader_.batch_shapes();
  }

 private:
  int64_t PassOver(int64_t count) override { return reader_.Skip(count); }

  ArraySource source_;
  SampleReader reader_;
};

}  // namespace skiff::training
