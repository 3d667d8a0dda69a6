#include "models/common/batch_reader.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "framework/base/error.h"
#include "models/common/data_random.h"

namespace skiff::models {
namespace {

bool HasShape(const Tensor& tensor, const Shape& shape) {
  return tensor.has_data() && tensor.shape() == shape;
}

Shape BatchShape(int64_t size, const Shape& sample) {
  std::vector<int64_t> dims = {size};
  dims.insert(dims.end(), sample.begin(), sample.end());
  return Shape(std::span<const int64_t>(dims));
}

}  // namespace

BatchReader::BatchReader(const SampleSource* source, const BatchReaderOptions& options)
    : source_(source), options_(options) {
  SKIFF_ENFORCE(options.batch_size >= 1, kInvalidArgument, "batch_size = ", options.batch_size,
                ": expected at least 1");
  SKIFF_ENFORCE(options.prefetch_batches >= 0, kInvalidArgument,
                "prefetch_batches = ", options.prefetch_batches, ": expected no negative number");
  const int64_t samples = source->size();
  SKIFF_ENFORCE(samples >= 1, kInvalidArgument, "no samples to read batches from");
  const int64_t rounding = options.drop_last ? 0 : options.batch_size - 1;
  batches_per_epoch_ = (samples + rounding) / options.batch_size;
  SKIFF_ENFORCE(batches_per_epoch_ >= 1, kInvalidArgument, "batch_size = ", options.batch_size,
                " is more than the ", samples, " samples, and incomplete batches are dropped");
  order_.resize(samples);
  Seek({});
}

BatchReader::~BatchReader() { StopThread(); }

std::vector<int64_t> BatchReader::batch_sizes() const {
  std::vector<int64_t> sizes;
  const int64_t samples = source_->size();
  if (samples >= options_.batch_size) sizes.push_back(options_.batch_size);
  const int64_t rest = samples % options_.batch_size;
  if (rest > 0 && !options_.drop_last) sizes.push_back(rest);
  return sizes;
}

void BatchReader::Seek(ReaderPosition position) {
  SKIFF_ENFORCE(position.epoch >= 0 && position.batch >= 0 && position.batch <= batches_per_epoch_,
                kOutOfRange, "epoch ", position.epoch, ", batch ", position.batch,
                " is no place to read from: there are ", batches_per_epoch_, " batches an epoch");
  StopThread();
  ShuffleFor(position.epoch);
  position_ = position;
}

bool BatchReader::Next(Batch* batch) {
  if (position_.batch == batches_per_epoch_) return false;
  if (options_.prefetch_batches == 0) {
    ReadBatch(position_, batch);
    ++position_.batch;
    return true;
  }
  // Started late, so that a reader which is only moved about starts no threads.
  if (!thread_.joinable()) StartThread();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failure_ != nullptr; });
  if (ready_.empty()) {
    const std::exception_ptr failure = failure_;
    lock.unlock();
    StopThread();
    std::rethrow_exception(failure);
  }
  std::swap(*batch, ready_.front());
  free_.push_back(std::move(ready_.front()));
  ready_.pop_front();
  ++position_.batch;
  lock.unlock();
  changed_.notify_all();
  return true;
}

// Fisher and Yates, with one draw a position.
void BatchReader::ShuffleFor(int64_t epoch) {
  std::iota(order_.begin(), order_.end(), int64_t{0});
  if (!options_.shuffle) return;
  const Philox philox = DataRandom(options_.seed, DataStream::kShuffle, epoch);
  for (uint64_t i = order_.size() - 1; i > 0; --i) {
    const Philox::Block words = philox.At(i);
    const uint64_t number = uint64_t{words[0]} << 32 | words[1];
    std::swap(order_[i], order_[number % (i + 1)]);
  }
}

void BatchReader::ReadBatch(ReaderPosition position, Batch* batch) const {
  const int64_t first = position.batch * options_.batch_size;
  const int64_t size = std::min(options_.batch_size, source_->size() - first);
  const Shape input_shape = BatchShape(size, source_->input_shape());
  if (!HasShape(batch->input, input_shape)) batch->input = Tensor(input_shape, DType::kFloat32);
  if (!HasShape(batch->label, {size, 1})) batch->label = Tensor({size, 1}, DType::kInt64);
  const auto input = batch->input.values<float>();
  const size_t elements = input.size() / size;
  for (int64_t i = 0; i < size; ++i) {
    source_->Read(order_[first + i], position.epoch, input.subspan(i * elements, elements),
                  batch->label.data<int64_t>() + i);
  }
}

void BatchReader::StartThread() {
  thread_ = std::thread([this, position = position_] { ReadAhead(position); });
}

void BatchReader::StopThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  stop_ = false;
  failure_ = nullptr;
  std::move(ready_.begin(), ready_.end(), std::back_inserter(free_));
  ready_.clear();
}

Batch BatchReader::TakeFree() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return {};
  Batch batch = std::move(free_.back());
  free_.pop_back();
  return batch;
}

void BatchReader::ReadAhead(ReaderPosition position) {
  for (; position.batch < batches_per_epoch_; ++position.batch) {
    Batch batch = TakeFree();
    std::exception_ptr failure;
    try {
      ReadBatch(position, &batch);
    } catch (...) {
      failure = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return stop_ || static_cast<int32_t>(ready_.size()) < options_.prefetch_batches;
    });
    if (stop_) return;
    if (failure != nullptr) {
      failure_ = failure;
    } else {
      ready_.push_back(std::move(batch));
    }
    lock.unlock();
    changed_.notify_all();
    if (failure != nullptr) return;
  }
}

}  // namespace skiff::models
