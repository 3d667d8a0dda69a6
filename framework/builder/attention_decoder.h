// A decoder with attention for training, where all words are known before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/builder/layers.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct AttentionDecoderOptions {
  int64_t size = 0;                // of the state; must be set
  std::string cell = "gru";        // a step is GruUnit; "lstm": LstmUnit
  std::string score = "additive";  // v · tanh(query + key); "dot": query · key
  // Before each step, by the state before, and the step reads [word, context]; "after": by the
  // state after the step, which reads the word alone.
  std::string attends = "before";
  Variable initial_hidden = {};  // [sequences, size]; undefined: zeros
  Variable initial_cell = {};    // of lstm, the same
  float forget_bias = 0.0f;      // of lstm: added to the forget gate before its sigmoid
  // Of gru: [width, 3 · size], where width is the width of a step's inputs. Of lstm: [width + size,
  // 4 · size], since the state follows the inputs, as in LstmUnit.
  ParamAttr param_attr = {};
  ParamAttr hidden_attr = {};  // of gru, for the state: [size, 3 · size]
  BiasAttr bias_attr = {};
  // [size, width of keys]; without it the state is the query.
  OptionalParamAttr query_attr = {};
  BiasAttr query_bias_attr = {};
  ParamAttr score_attr = {};  // v, [width of keys, 1]
  std::string name = {};
};
struct AttentionDecoderStates {
  Variable hidden = {};   // [rows, size]
  Variable context = {};  // [rows, width of encoded]
  Variable cell = {};     // of lstm, [rows, size]; else undefined
  // Of each sequence, a number for each of its rows and each token of its sentence.
  Variable weights = {};
};
// The states of a decoder that reads `words`, [rows, …] and ragged. In each step it attends to the
// tokens of its sentence: `encoded`, [tokens, …], has as many sequences as `words`, and the scores
// compare the state with `keys`, [tokens, …]. The context is the mean of `encoded`, weighted by the
// softmax of the scores (Bahdanau, Cho, Bengio 2015; Luong, Pham, Manning 2015).
//
// An op of Skiff's own, which computes the same as a DynamicRnn of SequenceAttention and GruUnit or
// LstmUnit, with the same parameters, in less time. Throws an Error (kInvalidArgument) for another
// cell, score or attends, for an initial_cell or forget_bias of gru, and if shapes don't fit.
AttentionDecoderStates AttentionDecoder(const Variable& words, const Variable& encoded,
                                        const Variable& keys,
                                        const AttentionDecoderOptions& options,
                                        Site site = Site::current());

}  // namespace skiff::layers
