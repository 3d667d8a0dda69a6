// One recurrent layer of 512 units over sequences as long as sentences, by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skiff/skiff.h"

namespace skiff {

struct RecurrentWorkload {
  std::string name;
  std::string cell;        // "lstm" or "gru"
  bool is_padded = false;  // the op rnn on padded input; else lstm or gru on ragged input
};

// Returns lstm_512, gru_512, padded_lstm_512 and padded_gru_512.
const std::vector<RecurrentWorkload>& RecurrentWorkloads();

struct BuiltRecurrent {
  Variable loss;  // the mean of all states
  FeedList feeds;
};

// Appends the layer, with the product of its input, to the default programs. Sequence i of the
// batch is as long as the (i mod 32)-th 32-quantile of the German sentences of Multi30k
// (Elliott et al. 2016) in words or, if `length` isn't 0, has `length` rows.
BuiltRecurrent BuildRecurrent(const RecurrentWorkload& workload, int64_t batch_size, int64_t length,
                              uint64_t seed);

}  // namespace skiff
