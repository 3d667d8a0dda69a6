#include "operators/sequence/kernels/padded_steps.h"

#include <algorithm>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

int64_t LengthOf(const Tensor* lengths, int64_t i, int64_t time, std::string_view what) {
  if (lengths == nullptr) return time;
  const int64_t length =
      lengths->dtype() == DType::kInt32 ? lengths->data<int32_t>()[i] : lengths->data<int64_t>()[i];
  SKIFF_ENFORCE(length >= 0 && length <= time, kOutOfRange, what, "[", i, "] is ", length,
                ", expected 0 to ", time);
  return length;
}

// Writes the offsets that sequences of these lengths have if they follow each other.
SequenceRows OffsetsOf(int64_t time, int64_t batch, const Tensor* lengths, int64_t* numbers,
                       std::string_view what) {
  auto* offsets = reinterpret_cast<uint64_t*>(numbers);
  offsets[0] = 0;
  for (int64_t i = 0; i < batch; ++i)
    offsets[i + 1] = offsets[i] + static_cast<uint64_t>(LengthOf(lengths, i, time, what));
  return SequenceRows(std::span<const uint64_t>(offsets, static_cast<size_t>(batch) + 1));
}

}  // namespace

PaddedSteps::PaddedSteps(int64_t time, int64_t batch, const Tensor* lengths, int64_t* numbers,
                         std::string_view what)
    : time_(time),
      batch_(batch),
      steps_(OffsetsOf(time, batch, lengths, numbers, what), false, numbers + batch + 1),
      first_(numbers + 2 * batch + 1, static_cast<size_t>(time) + 1) {
  std::fill(first_.begin(), first_.end(), 0);
  steps_.ForEach([&](const TimeSteps::Step& step) {
    std::fill(first_.begin() + step.time + 1, first_.end(), step.first + step.count);
  });
}

}  // namespace skiff
