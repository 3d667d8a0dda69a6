// ERNIE, a transformer encoder that is pre-trained to guess masked words and entities.
//
//   Sun et al., ERNIE: Enhanced Representation through Knowledge Integration, arXiv 1904.09223
//   Sun et al., ERNIE 2.0, arXiv 1907.12412 (task embeddings, several sentence tasks)
//   Vaswani et al., Attention Is All You Need, arXiv 1706.03762 (the encoder)
//   Devlin et al., BERT, arXiv 1810.04805 (masked words, next sentence)
//
// Layers are normalised after the residual addition, as published. Parameters have the names of
// published checkpoints. Like these, an attention layer has a matrix each for queries, keys and
// values.
#pragma once

#include <string>
#include <vector>

#include "framework/builder/variable.h"
#include "models/ernie/ernie_options.h"

namespace skiff::models {

// The inputs of the network, for N sequences of length L. Each is a feed of that name.
struct ErnieInputs {
  Variable token_ids;     // [N, L] int64
  Variable sentence_ids;  // [N, L] int64
  Variable position_ids;  // [N, L] int64
  Variable task_ids;      // [N, L] int64; not read without task embeddings
  Variable input_mask;    // [N, L] of the options' dtype: 1 for a token, 0 for padding
};

// Declares the feeds. Throws an Error (kInvalidArgument) for bad options, and for a length beyond
// the positions that the network has.
ErnieInputs ErnieFeeds(const ErnieOptions& options, int64_t length);

// Returns the names of the inputs that the network reads.
std::vector<std::string> InputNames(const ErnieInputs& inputs, const ErnieOptions& options);

// Returns a vector for each token: [N, L, hidden]. Tokens don't see padding.
Variable ErnieEncoder(const ErnieInputs& inputs, const ErnieOptions& options);

// Starts the names of the parameters of ErniePool.
inline constexpr const char* kErniePooler = "pooled_fc";
// Returns a vector for each sequence, made from the first token's vector: [N, hidden].
Variable ErniePool(const Variable& encoded, const ErnieOptions& options);

// Returns scores for the tokens at the given places: [places, vocabulary]. `places` [places] int64
// are rows of the [N * L, hidden] vectors. The product with the vocabulary is that with the word
// embedding.
Variable ErnieWordScores(const Variable& encoded, const Variable& places,
                         const ErnieOptions& options);

// Returns scores for classes of sequences: [N, classes]. `name` starts the names of the parameters.
Variable ErnieSequenceScores(const Variable& pooled, int64_t classes, const std::string& name,
                             const ErnieOptions& options);

}  // namespace skiff::models
