// Attention of a query over the tokens of one sentence, in attention_decoder and
// sequence_attention.
//
//   score_s = v · tanh(q + k_s), additive, or q · k_s      q: the query; k_s: the key of token s
//   w       = softmax of the scores
//   context = Σ w_s e_s                                    e_s: the encoder's state at token s
#pragma once

#include <cstdint>

namespace skiff {

// The tokens that a query sees.
template <typename T>
struct AttendedTokens {
  int64_t tokens = 0;
  int64_t width = 0;                // E
  int64_t key_width = 0;            // A
  const T* encoded = nullptr;       // [tokens, E]
  const T* keys = nullptr;          // [tokens, A]
  const T* score_weight = nullptr;  // [A], v of additive scores; nullptr: products
};

template <typename T>
struct AttentionGradient {
  const T* context;  // [E], from the outside
  const T* weights;  // [tokens], from the outside, or nullptr
  T* scores;         // [tokens], set
  T* query;          // [A], set
  T* keys;           // [tokens, A], added to; or nullptr
  T* score_weight;   // [A], added to; or nullptr. Of additive scores.
};

// The functions of a query.
template <typename T>
struct AttentionFunctions {
  // Returns those that are compiled for the processor's instruction set. T: float or double.
  static AttentionFunctions Used();

  // Computes the weights [tokens] and the context [E], zeros if there are no tokens.
  void (*forward)(const AttendedTokens<T>& seen, const T* query, T* weights, T* context);
  // Computes the gradient of all but the encoder's states, which is Σ w_s · gradient.context,
  // summed over the rows that see them.
  void (*backward)(const AttendedTokens<T>& seen, const T* query, const T* weights,
                   const AttentionGradient<T>& gradient);
};

}  // namespace skiff
