#include "framework/training/sequence_reader.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/tensor/philox.h"
#include "framework/tensor/tensor.h"
#include "framework/training/data_random.h"

namespace skiff::training {
namespace {

LengthBatchOptions BatchOptions(const SequenceReaderOptions& options) {
  return {.batch_size = options.batch_size,
          .most_tokens = options.most_tokens,
          .sorted_batches = options.sorted_batches,
          .shuffle = options.shuffle,
          .seed = options.seed};
}

void Check(const LabelledSequences& data, const SequenceReaderOptions& options) {
  CheckLengthBatchOptions(BatchOptions(options));
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
  for (const auto& sequence : data->sequences) {
    lengths_.push_back(static_cast<int64_t>(sequence.size()));
  }
  StartEpoch(0);
}

std::vector<BatchListReader::Samples> SequenceReader::BatchesOf(int64_t epoch) const {
  return LengthBatches(lengths_, BatchOptions(options_), epoch);
}

int64_t* SequenceReader::Write(int64_t sample, int64_t epoch, int64_t* to) const {
  const std::vector<int64_t>& ids = data_->sequences[static_cast<size_t>(sample)];
  if (options_.replaced == 0) return std::ranges::copy(ids, to).out;
  // Counter-based: a resumed reader and one that reads ahead replace the same ids.
  const Philox philox = DataRandom(options_.seed, DataStream::kMasking, epoch);
  uint64_t position = static_cast<uint64_t>(sample) << 32;
  for (const int64_t id : ids) {
    const Philox::Block words = philox.At(position++);
    *to++ = UnitDouble(words[0], words[1]) < options_.replaced ? options_.replacement : id;
  }
  return to;
}

void SequenceReader::Read(const Samples& samples, int64_t epoch, Batch* batch) const {
  std::vector<int64_t> lengths, labels;
  for (const int64_t sample : samples) {
    lengths.push_back(lengths_[static_cast<size_t>(sample)]);
    labels.push_back(data_->labels[static_cast<size_t>(sample)]);
  }
  std::vector<uint64_t> offsets = OffsetsOf(lengths);
  Tensor ids({static_cast<int64_t>(offsets.back())}, DType::kInt64);
  auto* to = ids.data<int64_t>();
  for (const int64_t sample : samples) to = Write(sample, epoch, to);
  ids.set_lod({std::move(offsets)});
  batch->feeds = {
      {kIds, std::move(ids)},
      {kLabel, Tensor::FromValues<int64_t>({static_cast<int64_t>(labels.size()), 1}, labels)}};
}

}  // namespace skiff::training
