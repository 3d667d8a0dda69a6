// A transformer with 334 parameter tensors, as many as an ERNIE 2.0 of 20 layers, but with narrow
// layers. It shows what a step costs besides its matrix products.
#pragma once

#include <cstdint>

#include "skiff/skiff.h"

namespace skiff {

struct TransformerOptions {
  int64_t batch_size = 8;  // sequences
  uint64_t seed = 1;       // of the words
  int64_t layers = 20;     // of 16 parameter tensors each; 14 more are before and after them
  int64_t width = 128;
  int64_t heads = 4;
  int64_t length = 32;  // of a sequence
  int64_t words = 4096;
};

struct BuiltTransformer {
  Variable loss;
  FeedList feeds;
};

// Appends the network to the default programs: word, position and sentence embeddings, post-norm
// encoder layers (Vaswani et al. 2017) with gelu, a masked-word head on every position that shares
// the word embeddings, and a sentence head on the first position (Devlin et al. 2019).
BuiltTransformer BuildTransformer(const TransformerOptions& options);

}  // namespace skiff
