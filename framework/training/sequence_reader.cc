#include "framework/training/sequence_reader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/tensor/philox.h"
#include "framework/training/data_random.h"
#include "framework/training/sample_reader.h"
#include "framework/training/state_text.h"

namespace skiff::training {
namespace {

void Check(const LabelledSequences& data, const SequenceReaderOptions& options) {
  for (const auto& [name, value] : {std::pair("batch_size", options.batch_size),
                                    {"most_tokens", options.most_tokens},
                                    {"sorted_batches", options.sorted_batches}}) {
    SKIFF_ENFORCE(value >= 1, kInvalidArgument, name, " = ", value, ": expected at least 1");
  }
  SKIFF_ENFORCE(options.replaced >= 0 && options.replaced < 1, kInvalidArgument,
                "replaced = ", options.replaced, ": expected a share in [0, 1)");
  SKIFF_ENFORCE(!data.sequences.empty(), kInvalidArgument, "no sequences to read batches from");
  SKIFF_ENFORCE(data.sequences.size() == data.labels.size(), kInvalidArgument, data.labels.size(),
                " labels for ", data.sequences.size(), " sequences");
  for (size_t i = 0; i < data.sequences.size(); ++i) {
    const auto length = static_cast<int64_t>(data.sequences[i].size());
    SKIFF_ENFORCE(length >= 1 && length <= options.most_tokens, kInvalidArgument, "sequence ", i,
                  " has ", length, " tokens: expected 1 to ", options.most_tokens);
  }
}

}  // namespace

SequenceReader::SequenceReader(const LabelledSequences* data, const SequenceReaderOptions& options)
    : data_(data), options_(options) {
  Check(*data, options);
  StartEpoch(0);
}

int64_t SequenceReader::LengthOf(int64_t sample) const {
  return static_cast<int64_t>(data_->sequences[static_cast<size_t>(sample)].size());
}

int64_t* SequenceReader::Write(int64_t sample, int64_t* to) const {
  const std::vector<int64_t>& ids = data_->sequences[static_cast<size_t>(sample)];
  if (options_.replaced == 0) return std::ranges::copy(ids, to).out;
  // Counter-based: a resumed reader and one that reads ahead replace the same ids.
  const Philox philox = DataRandom(options_.seed, DataStream::kMasking, epoch_);
  uint64_t position = static_cast<uint64_t>(sample) << 32;
  for (const int64_t id : ids) {
    const Philox::Block words = philox.At(position++);
    *to++ = UnitDouble(words[0], words[1]) < options_.replaced ? options_.replacement : id;
  }
  return to;
}

std::vector<SequenceReader::Samples> SequenceReader::BatchesOf(int64_t epoch) const {
  const auto count = static_cast<int64_t>(data_->sequences.size());
  Samples order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::vector<Samples> batches;
  if (!options_.shuffle) {
    AppendBatches(order, &batches);
    return batches;
  }
  order = ShuffledOrder(count, options_.seed, epoch);
  const bool sorts = options_.sorted_batches > 1;
  const int64_t most = sorts ? MultiplyCounts(options_.sorted_batches, options_.batch_size) : count;
  for (int64_t first = 0; first < count; first += most) {
    const auto size = static_cast<size_t>(std::min(most, count - first));
    const std::span<int64_t> part = std::span(order).subspan(static_cast<size_t>(first), size);
    if (sorts) {
      std::ranges::stable_sort(part, {}, [this](int64_t sample) { return LengthOf(sample); });
    }
    AppendBatches(part, &batches);
  }
  std::vector<Samples> shuffled;
  // Another stream than that of the samples.
  const auto batch_count = static_cast<int64_t>(batches.size());
  for (const int64_t batch : ShuffledOrder(batch_count, ~options_.seed, epoch))
    shuffled.push_back(std::move(batches[static_cast<size_t>(batch)]));
  return shuffled;
}

void SequenceReader::AppendBatches(std::span<const int64_t> part,
                                   std::vector<Samples>* batches) const {
  Samples batch;
  int64_t tokens = 0;
  for (const int64_t sample : part) {
    const int64_t length = LengthOf(sample);
    const bool is_full = static_cast<int64_t>(batch.size()) == options_.batch_size ||
                         tokens + length > options_.most_tokens;
    if (is_full) {
      batches->push_back(std::exchange(batch, {}));
      tokens = 0;
    }
    batch.push_back(sample);
    tokens += length;
  }
  batches->push_back(std::move(batch));
}

void SequenceReader::StartEpoch(int64_t epoch) {
  SKIFF_ENFORCE(epoch >= 0, kOutOfRange, "epoch ", epoch, ": expected no negative number");
  batches_ = BatchesOf(epoch);
  epoch_ = epoch;
  next_ = 0;
}

bool SequenceReader::Next(Batch* batch) {
  if (next_ == batches_.size()) return false;
  const Samples& samples = batches_[next_];
  std::vector<int64_t> lengths, labels;
  for (const int64_t sample : samples) {
    lengths.push_back(LengthOf(sample));
    labels.push_back(data_->labels[static_cast<size_t>(sample)]);
  }
  std::vector<uint64_t> offsets = OffsetsOf(lengths);
  Tensor ids({static_cast<int64_t>(offsets.back())}, DType::kInt64);
  auto* to = ids.data<int64_t>();
  for (const int64_t sample : samples) to = Write(sample, to);
  ids.set_lod({std::move(offsets)});
  batch->feeds = {
      {kIds, std::move(ids)},
      {kLabel, Tensor::FromValues<int64_t>({static_cast<int64_t>(labels.size()), 1}, labels)}};
  batch->samples = static_cast<int64_t>(samples.size());
  ++next_;
  return true;
}

ReaderState SequenceReader::state() const {
  return {{"epoch", std::to_string(epoch_)}, {"batch", std::to_string(next_)}};
}

void SequenceReader::Restore(const ReaderState& state) {
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
