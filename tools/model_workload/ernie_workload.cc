#include "tools/model_workload/ernie_workload.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/tensor/philox.h"
#include "models/ernie/pretraining.h"

namespace skiff {
namespace {

constexpr int64_t kTokens = 8000;
constexpr int64_t kPadding = 8;

models::ErnieOptions Preset(const std::string& name, float dropout = 0) {
  models::ErnieOptions options = models::ErniePreset(name);
  options.vocabulary = kTokens;
  options.dropout = options.attention_dropout = dropout;
  return options;
}

models::ErnieOptions Narrow20Layers() {
  models::ErnieOptions options = Preset("xbase");
  options.hidden = 128;
  options.heads = 4;
  options.feed_forward = 512;
  return options;
}

Tensor RandomIds(const Shape& shape, int64_t limit, uint64_t seed) {
  Tensor ids(shape, DType::kInt64);
  const Philox philox({seed, 0, 0});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    ids.data<int64_t>()[i] = philox.At(static_cast<uint64_t>(i))[0] % limit;
  }
  return ids;
}

// Calls value(row, column) for each element of a tensor [rows, columns].
template <typename T, typename Value>
Tensor Filled(int64_t rows, int64_t columns, const Value& value) {
  Tensor tensor({rows, columns}, kDTypeOf<T>);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      tensor.data<T>()[row * columns + column] = static_cast<T>(value(row, column));
    }
  }
  return tensor;
}

}  // namespace

std::vector<ErnieWorkload> ErnieWorkloads() {
  return {{.name = "ernie_tiny", .options = Preset("tiny")},
          {.name = "ernie_mini", .options = Preset("mini")},
          {.name = "ernie_mini_dropout", .options = Preset("mini", 0.1f)},
          {.name = "ernie_20_layers", .options = Narrow20Layers(), .length = 32, .masked = 5}};
}

BuiltErnie BuildErnie(const ErnieWorkload& workload, int64_t batch_size, uint64_t seed) {
  const int64_t length = workload.length;
  SKIFF_ENFORCE(length >= kPadding + workload.masked, kInvalidArgument, "length = ", length,
                ": expected room for ", kPadding, " tokens of padding and ", workload.masked,
                " masked ones");
  models::ErnieOptions network = workload.options;
  network.positions = std::max(network.positions, length);
  const models::PretrainingLoss built =
      models::AppendErniePretraining(network, {.length = length, .masked = workload.masked});
  const Shape ids{batch_size, length};
  const auto position = [](int64_t, int64_t column) { return column; };
  const auto sentence = [&](int64_t, int64_t column) { return column < length / 2 ? 0 : 1; };
  const auto is_token = [&](int64_t, int64_t column) { return column < length - kPadding; };
  // Spread over the tokens of the sequence.
  const auto place = [&](int64_t row, int64_t i) {
    return row * length + i * (length - kPadding) / workload.masked;
  };
  const int64_t masked = workload.masked;
  return {
      .loss = built.loss,
      .feeds = {
          {"token_ids", RandomIds(ids, workload.options.vocabulary, seed)},
          {"position_ids", Filled<int64_t>(batch_size, length, position)},
          {"sentence_ids", Filled<int64_t>(batch_size, length, sentence)},
          {"input_mask", Filled<float>(batch_size, length, is_token)},
          {"masked_positions", Filled<int64_t>(batch_size, masked, place)},
          {"masked_labels", RandomIds({batch_size, masked}, workload.options.vocabulary, seed + 1)},
          {"masked_weights", Filled<float>(batch_size, masked, [](int64_t, int64_t) { return 1; })},
          {"sentence_label", RandomIds({batch_size, 1}, 2, seed + 2)}}};
}

}  // namespace skiff
