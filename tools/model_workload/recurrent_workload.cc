#include "tools/model_workload/recurrent_workload.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "framework/tensor/philox.h"
#include "framework/tensor/tensor.h"

namespace skiff {
namespace {

constexpr int64_t kWidth = 512;

// recurrent_in_torch.py has the same.
constexpr std::array<int64_t, 32> kSentenceLengths = {6,  7,  7,  8,  8,  9,  9,  9,  10, 10, 10,
                                                      10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14,
                                                      14, 14, 15, 15, 16, 17, 18, 19, 20, 24};

std::vector<int64_t> LengthsOf(int64_t batch_size, int64_t length) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch_size; ++i) {
    const auto at = static_cast<size_t>(i) % kSentenceLengths.size();
    lengths.push_back(length == 0 ? kSentenceLengths[at] : length);
  }
  return lengths;
}

// Numbers in [-1, 1).
Tensor GeneratedNumbers(const Shape& shape, uint64_t seed) {
  Tensor numbers(shape, DType::kFloat32);
  const Philox philox({seed, 0, 0});
  for (int64_t i = 0; i < numbers.element_count(); ++i) {
    numbers.data<float>()[i] = UnitFloat(philox.At(static_cast<uint64_t>(i))[0]) * 2 - 1;
  }
  return numbers;
}

BuiltRecurrent BuildPadded(const RecurrentWorkload& workload, const std::vector<int64_t>& lengths,
                           uint64_t seed) {
  const Variable x = layers::Data("x", {-1, -1, kWidth});
  const Variable length = layers::Data("lengths", {-1}, DType::kInt64);
  const layers::RecurrentOptions options{.hidden_size = kWidth, .lengths = length};
  const Variable states =
      workload.cell == "lstm" ? layers::Lstm(x, options).out : layers::Gru(x, options).out;
  const int64_t batch = std::ssize(lengths);
  const int64_t time = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
  return {.loss = layers::Mean(states),
          .feeds = {{"x", GeneratedNumbers({time, batch, kWidth}, seed)},
                    {"lengths", Tensor::FromValues<int64_t>({batch}, lengths)}}};
}

BuiltRecurrent BuildRagged(const RecurrentWorkload& workload, const std::vector<int64_t>& lengths,
                           uint64_t seed) {
  const Variable x = layers::Data("x", {-1, kWidth}, DType::kFloat32, {.lod_level = 1});
  const bool is_lstm = workload.cell == "lstm";
  const Variable product = layers::Fc(x, (is_lstm ? 4 : 3) * kWidth, {.bias_attr = false});
  const Variable states =
      is_lstm ? layers::DynamicLstm(product, {.size = kWidth, .use_peepholes = false}).hidden
              : layers::DynamicGru(product, {.size = kWidth});
  const int64_t rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  Tensor numbers = GeneratedNumbers({rows, kWidth}, seed);
  numbers.set_lod({OffsetsOf(lengths)});
  return {.loss = layers::Mean(states), .feeds = {{"x", std::move(numbers)}}};
}

}  // namespace

const std::vector<RecurrentWorkload>& RecurrentWorkloads() {
  static const std::vector<RecurrentWorkload> kWorkloads = {
      {.name = "lstm_512", .cell = "lstm"},
      {.name = "gru_512", .cell = "gru"},
      {.name = "padded_lstm_512", .cell = "lstm", .is_padded = true},
      {.name = "padded_gru_512", .cell = "gru", .is_padded = true}};
  return kWorkloads;
}

BuiltRecurrent BuildRecurrent(const RecurrentWorkload& workload, int64_t batch_size, int64_t length,
                              uint64_t seed) {
  const std::vector<int64_t> lengths = LengthsOf(batch_size, length);
  return workload.is_padded ? BuildPadded(workload, lengths, seed)
                            : BuildRagged(workload, lengths, seed);
}

}  // namespace skiff
