// The layers of the translation model: what its training and its decoding share.
#pragma once

#include <cstdint>
#include <string>

#include "framework/builder/variable.h"

namespace skiff::models {

struct Seq2SeqOptions {
  int64_t source_tokens = 0;  // sizes of the vocabularies; must be set
  int64_t target_tokens = 0;
  int64_t embedding = 64;
  int64_t hidden = 128;  // of the decoder, and of each direction of the encoder
  float dropout = 0.0f;  // of embeddings and of what a token is chosen by
};

// The tables of the tokens' vectors, [tokens, embedding].
inline constexpr const char* kSourceTable = "source.table";
inline constexpr const char* kTargetTable = "target.table";

// What the decoder looks at, a row for each source token.
struct Encoded {
  Variable states;  // [tokens, 2 * hidden], ragged
  Variable keys;    // [tokens, hidden], ragged: the states' part of the attention scores
};

struct Attended {
  Variable context;  // [n, 2 * hidden]
  Variable weights;  // [tokens], ragged
};

// All parameters have names, so that the programs that use the network share them.
class Seq2SeqNetwork {
 public:
  // Throws an Error (kInvalidArgument) for a size below 1. The layers throw one for a dropout
  // outside [0, 1).
  explicit Seq2SeqNetwork(const Seq2SeqOptions& options);

  Encoded Encode(const Variable& ids) const;

  // Returns the state before the first step, [sentences, hidden]: from the backward direction at
  // the first token, which has read all.
  Variable FirstState(const Encoded& encoded) const;

  // Returns the vectors of tokens of the target, [n, embedding].
  Variable Embed(const Variable& ids) const;

  // The additive attention of Bahdanau et al., section A.1.2: a softmax, over the tokens of each
  // sentence, of v · tanh(query + key).
  Attended Attend(const Variable& state, const Encoded& encoded) const;

  // Returns the state after `before`, [n, hidden].
  Variable Step(const Variable& word, const Variable& context, const Variable& before) const;

  // Returns the scores of all tokens, [n, target_tokens].
  Variable Scores(const Variable& state, const Variable& context, const Variable& word) const;

 private:
  Variable Table(const Variable& ids, int64_t rows, const char* name) const;
  Variable Dropped(const Variable& x) const;

  const Seq2SeqOptions options_;
};

}  // namespace skiff::models
