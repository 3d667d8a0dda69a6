// The arguments that say what queries see, on all places: of attention_decoder and
// sequence_attention.
#pragma once

#include "framework/op/arguments.h"
#include "operators/sequence/kernels/sequence_rows.h"
#include "operators/sequence/kernels/token_attention.h"

namespace skiff {

// The widths of what queries see.
struct AttentionWidths {
  explicit AttentionWidths(const OpContext& context)
      : width(RowWidth(context, "Encoded")), key_width(RowWidth(context, "Keys")) {}

  // Returns the tokens of some rows, given the tokens of all rows.
  template <typename T>
  AttendedTokens<T> Tokens(const RowRange& rows, const T* encoded, const T* keys,
                           const T* score_weight) const {
    return {.tokens = rows.count(),
            .width = width,
            .key_width = key_width,
            .encoded = encoded + rows.begin * width,
            .keys = keys + rows.begin * key_width,
            .score_weight = score_weight};
  }

  int64_t width;      // E
  int64_t key_width;  // A
};

template <typename T>
struct AttentionArguments : AttentionWidths {
  explicit AttentionArguments(const OpContext& context)
      : AttentionWidths(context),
        encoded(context, "Encoded"),
        keys(context, "Keys"),
        score_weight(context, "ScoreWeight") {}

  // Returns the sentences.
  SequenceRows Sentences(const KernelContext& run) const {
    return SequenceRows(encoded.tensor(run));
  }
  // Returns the tokens of some rows, and the tokens of all rows.
  AttendedTokens<T> Tokens(const KernelContext& run, const RowRange& rows) const {
    return AttentionWidths::Tokens(rows, encoded(run), keys(run), score_weight(run));
  }
  AttendedTokens<T> AllTokens(const KernelContext& run) const {
    return Tokens(run, {0, encoded.shape(run)[0]});
  }

  In<T> encoded;
  In<T> keys;
  In<T> score_weight;
};

// The other arguments of sequence_attention_grad.
template <typename T>
struct SequenceAttentionGradients {
  explicit SequenceAttentionGradients(const OpContext& context)
      : weights(context, "AttentionWeights"),
        of_context(context, "Context@GRAD"),
        of_weights(context, "AttentionWeights@GRAD"),
        of_query(context, "Query@GRAD"),
        of_encoded(context, "Encoded@GRAD"),
        of_keys(context, "Keys@GRAD"),
        of_score_weight(context, "ScoreWeight@GRAD") {}

  In<T> weights;
  // Gradients.
  In<T> of_context;
  In<T> of_weights;
  Out<T> of_query;
  Out<T> of_encoded;
  Out<T> of_keys;
  Out<T> of_score_weight;
};

}  // namespace skiff
