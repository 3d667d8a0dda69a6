#include "framework/training/sample_reader.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/training/data_random.h"
#include "framework/training/state_text.h"

namespace skiff::training {
namespace {

Shape BatchShape(int64_t size, const Shape& sample) {
  std::vector<int64_t> dims = {size};
  dims.insert(dims.end(), sample.begin(), sample.end());
  return Shape(std::span<const int64_t>(dims));
}

bool Fits(const Tensor& tensor, const FeedShape& feed) {
  return tensor.has_data() && tensor.shape() == feed.shape && tensor.dtype() == feed.dtype;
}

}  // namespace

void CheckRow(const Tensor& tensor, int64_t row) {
  SKIFF_ENFORCE(tensor.shape().rank() > 0 && row >= 0 && row < tensor.shape()[0], kOutOfRange,
                "row ", row, " of a tensor of shape ", tensor.shape());
}

// Fisher-Yates, with one draw per position. The remainder isn't exactly uniform, but of 64 bits the
// bias is below count / 2^64.
std::vector<int64_t> ShuffledOrder(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  const Philox philox = DataRandom(seed, DataStream::kShuffle, epoch);
  for (uint64_t i = order.empty() ? 0 : order.size() - 1; i > 0; --i) {
    const Philox::Block words = philox.At(i);
    const uint64_t number = uint64_t{words[0]} << 32 | words[1];
    std::swap(order[i], order[number % (i + 1)]);
  }
  return order;
}

SampleReader::SampleReader(const SampleSource* source, const SampleReaderOptions& options)
    : source_(source), options_(options) {
  SKIFF_ENFORCE(options.batch_size >= 1, kInvalidArgument, "batch_size = ", options.batch_size,
                ": expected at least 1");
  const int64_t samples = source->size();
  SKIFF_ENFORCE(samples >= 1, kInvalidArgument, "no samples to read batches from");
  batches_in_epoch_ = samples / options.batch_size;
  if (samples % options.batch_size != 0 && !options.drop_last) ++batches_in_epoch_;
  SKIFF_ENFORCE(batches_in_epoch_ >= 1, kInvalidArgument, "batch_size = ", options.batch_size,
                " is more than the ", samples, " samples, and incomplete batches are dropped");
  GoTo(0, 0);
}

std::vector<FeedShape> SampleReader::FeedsOf(int64_t batch_size) const {
  std::vector<FeedShape> feeds = source_->fields();
  for (FeedShape& feed : feeds) feed.shape = BatchShape(batch_size, feed.shape);
  return feeds;
}

std::vector<std::vector<FeedShape>> SampleReader::batch_shapes() const {
  std::vector<std::vector<FeedShape>> shapes;
  const int64_t samples = source_->size();
  // At most two kinds of batches: full ones and the last.
  if (samples >= options_.batch_size) shapes.push_back(FeedsOf(options_.batch_size));
  const int64_t rest = samples % options_.batch_size;
  if (rest > 0 && !options_.drop_last) shapes.push_back(FeedsOf(rest));
  return shapes;
}

void SampleReader::GoTo(int64_t epoch, int64_t batch) {
  if (options_.shuffle) {
    // Computed from seed and epoch alone, not from the order before: so a checkpoint needs two
    // numbers to resume in the middle of an epoch.
    order_ = ShuffledOrder(source_->size(), options_.seed, epoch);
  } else if (order_.empty()) {
    order_.resize(static_cast<size_t>(source_->size()));
    std::iota(order_.begin(), order_.end(), int64_t{0});
  }
  epoch_ = epoch;
  batch_ = batch;
}

void SampleReader::StartEpoch(int64_t epoch) {
  SKIFF_ENFORCE(epoch >= 0, kOutOfRange, "epoch ", epoch, ": expected no negative number");
  GoTo(epoch, 0);
}

ReaderState SampleReader::state() const {
  return {{"epoch", std::to_string(epoch_)}, {"batch", std::to_string(batch_)}};
}

void SampleReader::Restore(const ReaderState& state) {
  const int64_t epoch = IntegerOf(state, "epoch");
  const int64_t batch = IntegerOf(state, "batch");
  SKIFF_ENFORCE(epoch >= 0 && batch >= 0 && batch <= batches_in_epoch_, kDataLoss, "epoch ", epoch,
                ", batch ", batch, " is no place to read from: there are ", batches_in_epoch_,
                " batches an epoch");
  GoTo(epoch, batch);
}

bool SampleReader::Next(Batch* batch) {
  if (batch_ == batches_in_epoch_) return false;
  ReadBatch(batch);
  ++batch_;
  return true;
}

int64_t SampleReader::PassOver(int64_t count) {
  const int64_t passed = std::min(count, batches_in_epoch_ - batch_);
  batch_ += passed;
  return passed;
}

void SampleReader::ReadBatch(Batch* batch) {
  const int64_t first = batch_ * options_.batch_size;
  // Only the last batch of an epoch may be smaller.
  const int64_t size = std::min(options_.batch_size, source_->size() - first);
  const std::vector<FeedShape> feeds = FeedsOf(size);
  batch->feeds.resize(feeds.size());
  fields_.clear();
  for (size_t i = 0; i < feeds.size(); ++i) {
    auto& [name, tensor] = batch->feeds[i];
    name = feeds[i].name;
    // The storage of an earlier batch of the same size serves again.
    if (!Fits(tensor, feeds[i])) tensor = Tensor(feeds[i].shape, feeds[i].dtype);
    fields_.push_back(tensor);
  }
  for (int64_t row = 0; row < size; ++row) {
    source_->Read(order_[static_cast<size_t>(first + row)], epoch_, row, fields_);
  }
  batch->samples = size;
}

}  // namespace skiff::training
