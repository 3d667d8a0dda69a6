// ERNIE's pre-training on generated token ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/ernie/ernie_options.h"
#include "skiff/skiff.h"

namespace skiff {

struct ErnieWorkload {
  std::string name;
  models::ErnieOptions options;
  int64_t length = 128;  // of a sequence
  int64_t masked = 20;   // tokens of a sequence
};

// Returns these:
//   ernie_tiny, ernie_mini: the presets with 8,000 tokens and without dropout
//   ernie_mini_dropout: with dropout of 0.1
//   ernie_20_layers: the 334 parameter tensors of xbase, of width 128, on sequences of 32: shows
//   what a step costs besides its matrix products
std::vector<ErnieWorkload> ErnieWorkloads();

struct BuiltErnie {
  Variable loss;
  FeedList feeds;
};

// Appends the network with its losses to the default programs, with as many positions as the
// sequences need. The last 8 tokens of each generated sequence are padding. Throws an Error
// (kInvalidArgument) if a sequence hasn't room for the padding and its masked tokens.
BuiltErnie BuildErnie(const ErnieWorkload& workload, int64_t batch_size, uint64_t seed);

}  // namespace skiff
