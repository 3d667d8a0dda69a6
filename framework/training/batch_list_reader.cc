#include "framework/training/batch_list_reader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/training/sample_reader.h"
#include "framework/training/state_text.h"

namespace skiff::training {
namespace {

using Samples = std::vector<int64_t>;

// Appends the batches of these samples, at least one, in their order.
void AppendBatches(std::span<const int64_t> part, std::span<const int64_t> lengths,
                   const LengthBatchOptions& options, std::vector<Samples>* batches) {
  Samples batch;
  int64_t tokens = 0;
  for (const int64_t sample : part) {
    const int64_t length = lengths[static_cast<size_t>(sample)];
    const bool is_full = static_cast<int64_t>(batch.size()) == options.batch_size ||
                         (!batch.empty() && tokens + length > options.most_tokens);
    if (is_full) {
      batches->push_back(std::exchange(batch, {}));
      tokens = 0;
    }
    batch.push_back(sample);
    tokens += length;
  }
  batches->push_back(std::move(batch));
}

}  // namespace

void CheckLengthBatchOptions(const LengthBatchOptions& options) {
  for (const auto& [name, value] : {std::pair("batch_size", options.batch_size),
                                    {"most_tokens", options.most_tokens},
                                    {"sorted_batches", options.sorted_batches}}) {
    SKIFF_ENFORCE(value >= 1, kInvalidArgument, name, " = ", value, ": expected at least 1");
  }
}

std::vector<Samples> LengthBatches(std::span<const int64_t> lengths,
                                   const LengthBatchOptions& options, int64_t epoch) {
  const auto count = static_cast<int64_t>(lengths.size());
  Samples order(lengths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::vector<Samples> batches;
  if (!options.shuffle) {
    AppendBatches(order, lengths, options, &batches);
    return batches;
  }
  order = ShuffledOrder(count, options.seed, epoch);
  const bool sorts = options.sorted_batches > 1;
  const int64_t most = sorts ? MultiplyCounts(options.sorted_batches, options.batch_size) : count;
  for (int64_t first = 0; first < count; first += most) {
    const auto size = static_cast<size_t>(std::min(most, count - first));
    const std::span<int64_t> part = std::span(order).subspan(static_cast<size_t>(first), size);
    if (sorts) {
      std::ranges::stable_sort(
          part, {}, [&](int64_t sample) { return lengths[static_cast<size_t>(sample)]; });
    }
    AppendBatches(part, lengths, options, &batches);
  }
  std::vector<Samples> shuffled;
  // Another stream than that of the samples.
  const auto batch_count = static_cast<int64_t>(batches.size());
  for (const int64_t batch : ShuffledOrder(batch_count, ~options.seed, epoch))
    shuffled.push_back(std::move(batches[static_cast<size_t>(batch)]));
  return shuffled;
}

void BatchListReader::StartEpoch(int64_t epoch) {
  SKIFF_ENFORCE(epoch >= 0, kOutOfRange, "epoch ", epoch, ": expected no negative number");
  batches_ = BatchesOf(epoch);
  epoch_ = epoch;
  next_ = 0;
}

bool BatchListReader::Next(Batch* batch) {
  if (next_ == batches_.size()) return false;
  Read(batches_[next_], epoch_, batch);
  batch->samples = static_cast<int64_t>(batches_[next_].size());
  ++next_;
  return true;
}

int64_t BatchListReader::PassOver(int64_t count) {
  const int64_t passed = std::min(count, static_cast<int64_t>(batches_.size() - next_));
  next_ += static_cast<size_t>(passed);
  return passed;
}

ReaderState BatchListReader::state() const {
  return {{"epoch", std::to_string(epoch_)}, {"batch", std::to_string(next_)}};
}

void BatchListReader::Restore(const ReaderState& state) {
  const int64_t epoch = IntegerOf(state, "epoch");
  const int64_t batch = IntegerOf(state, "batch");
  SKIFF_ENFORCE(epoch >= 0, kDataLoss, "epoch ", epoch, " is no place to read from");
  std::vector<Samples> batches = BatchesOf(epoch);
  const auto count = static_cast<int64_t>(batches.size());
  SKIFF_ENFORCE(batch >= 0 && batch <= count, kDataLoss, "epoch ", epoch, ", batch ", batch,
                " is no place to read from: there are ", count, " batches in it");
  batches_ = std::move(batches);
  epoch_ = epoch;
  next_ = static_cast<size_t>(batch);
}

}  // namespace skiff::training
