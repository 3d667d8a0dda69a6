#include "models/char_rnn/stream_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/training/state_text.h"

namespace skiff::models {

using training::FeedShape;

StreamReader::StreamReader(const std::vector<int64_t>* text, const StreamReaderOptions& options)
    : text_(text), options_(options) {
  for (const auto& [name, value] :
       {std::pair("batch_size", options.batch_size), {"steps", options.steps}}) {
    SKIFF_ENFORCE(value >= 1, kInvalidArgument, name, " = ", value, ": expected at least 1");
  }
  // The last character of a stream predicts the one behind it.
  length_ = (std::ssize(*text) - 1) / options.batch_size;
  SKIFF_ENFORCE(length_ >= 1, kInvalidArgument, "a text of ", text->size(),
                " characters is too short for batch_size = ", options.batch_size,
                " streams: expected at least ", options.batch_size + 1, " characters");
}

int64_t StreamReader::batches_in_epoch() const { return (length_ - 1) / options_.steps + 1; }

int64_t StreamReader::StepsOf(int64_t batch) const {
  return std::min(options_.steps, length_ - batch * options_.steps);
}

std::vector<FeedShape> StreamReader::FeedsOf(int64_t steps) const {
  return {{kIds, {steps, options_.batch_size}, DType::kInt64},
          {kLabel, {steps, options_.batch_size, 1}, DType::kInt64},
          {kCarried, {1}, DType::kFloat32}};
}

std::vector<std::vector<FeedShape>> StreamReader::batch_shapes() const {
  const int64_t last = batches_in_epoch() - 1;
  std::vector<std::vector<FeedShape>> shapes = {FeedsOf(StepsOf(0))};
  if (StepsOf(last) != StepsOf(0)) shapes.push_back(FeedsOf(StepsOf(last)));
  return shapes;
}

void StreamReader::StartEpoch(int64_t epoch) {
  SKIFF_ENFORCE(epoch >= 0, kOutOfRange, "epoch ", epoch, ": expected no negative number");
  epoch_ = epoch;
  next_ = 0;
}

bool StreamReader::Next(training::Batch* batch) {
  if (next_ == batches_in_epoch()) return false;
  const int64_t steps = StepsOf(next_);
  Tensor ids({steps, options_.batch_size}, DType::kInt64);
  Tensor label({steps, options_.batch_size, 1}, DType::kInt64);
  for (int64_t stream = 0; stream < options_.batch_size; ++stream) {
    const int64_t* from = text_->data() + stream * length_ + next_ * options_.steps;
    for (int64_t t = 0; t < steps; ++t) {
      ids.data<int64_t>()[t * options_.batch_size + stream] = from[t];
      label.data<int64_t>()[t * options_.batch_size + stream] = from[t + 1];
    }
  }
  batch->feeds = {{kIds, std::move(ids)},
                  {kLabel, std::move(label)},
                  {kCarried, Tensor::FromValues<float>({1}, {next_ == 0 ? 0.0f : 1.0f})}};
  batch->samples = steps * options_.batch_size;
  ++next_;
  return true;
}

int64_t StreamReader::PassOver(int64_t count) {
  const int64_t passed = std::min(count, batches_in_epoch() - next_);
  next_ += passed;
  return passed;
}

training::ReaderState StreamReader::state() const {
  return {{"epoch", std::to_string(epoch_)}, {"batch", std::to_string(next_)}};
}

void StreamReader::Restore(const training::ReaderState& state) {
  const int64_t epoch = training::IntegerOf(state, "epoch");
  const int64_t batch = training::IntegerOf(state, "batch");
  SKIFF_ENFORCE(epoch >= 0 && batch >= 0 && batch <= batches_in_epoch(), kDataLoss, "epoch ", epoch,
                ", batch ", batch, " is no place to read from: there are ", batches_in_epoch(),
                " batches in an epoch");
  epoch_ = epoch;
  next_ = batch;
}

}  // namespace skiff::models
