// The layer of attention_decoder, on all places.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "operators/sequence/kernels/gru_layer.h"
#include "operators/sequence/kernels/lstm_layer.h"
#include "operators/sequence/kernels/token_attention_arguments.h"

namespace skiff {

// The settings for which a kernel of the decoder is prepared.
struct DecoderSizes : AttentionWidths {
  explicit DecoderSizes(const OpContext& context)
      : AttentionWidths(context),
        hidden(context.Input("Weight").shape[0]),
        gates(context.Input("Weight").shape[1]),
        tokens(context.Input("Encoded").shape[0]),
        most{context.Input("Input").shape[0],
             std::max(SequenceCount(context, "Input"), SequenceCount(context, "Encoded"))} {}

  int64_t hidden;  // H
  int64_t gates;   // 3H or 4H
  int64_t tokens;  // at most
  RowCapacity most;
};

inline bool DecodesWithLstm(const OpContext& context) {
  return context.Attr<std::string>("cell") == "lstm";
}
// Whether the state before a step makes its query, and the step has the context.
inline bool AttendsBefore(const OpContext& context) {
  return context.Attr<std::string>("attends") == "before";
}

// Calls body(i, rows, tokens, weight) for each sentence: the rows of Input, the tokens, and where
// the sentence's numbers in AttentionWeights begin, one for each pair of a row and a token.
template <typename Body>
void ForEachSentencePair(const SequenceRows& targets, const SequenceRows& sources,
                         const Body& body) {
  int64_t weight = 0;
  for (int64_t i = 0; i < targets.size(); ++i) {
    const RowRange rows = targets[i];
    const RowRange tokens = sources[i];
    body(i, rows, tokens, weight);
    weight += rows.count() * tokens.count();
  }
}

// The inputs of the op and the gradient, besides the inputs of the cell's steps.
template <typename T>
struct DecoderInputs {
  explicit DecoderInputs(const OpContext& context)
      : seen(context),
        input(context, "Input"),
        h0(context, "H0"),
        context_weight(context, "ContextWeight"),
        query_weight(context, "QueryWeight") {}

  AttentionArguments<T> seen;
  In<T> input;
  In<T> h0;
  In<T> context_weight;
  In<T> query_weight;
};

// The other arguments of the gradient.
template <typename T>
struct DecoderGradients {
  explicit DecoderGradients(const OpContext& context)
      : hidden(context, "Hidden"),
        context(context, "Context"),
        weights(context, "AttentionWeights"),
        batch_gate(context, "BatchGate"),
        batch_query(context, "BatchQuery"),
        of_hidden(context, "Hidden@GRAD"),
        of_context(context, "Context@GRAD"),
        of_weights(context, "AttentionWeights@GRAD"),
        of_input(context, "Input@GRAD"),
        of_encoded(context, "Encoded@GRAD"),
        of_keys(context, "Keys@GRAD"),
        of_h0(context, "H0@GRAD"),
        of_weight(context, "Weight@GRAD"),
        of_context_weight(context, "ContextWeight@GRAD"),
        of_bias(context, "Bias@GRAD"),
        of_query_weight(context, "QueryWeight@GRAD"),
        of_query_bias(context, "QueryBias@GRAD"),
        of_score_weight(context, "ScoreWeight@GRAD") {}

  In<T> hidden;
  In<T> context;
  In<WideType<T>> weights;
  In<T> batch_gate;
  In<T> batch_query;
  // Gradients.
  In<T> of_hidden;
  In<T> of_context;
  In<WideType<T>> of_weights;
  Out<T> of_input;
  Out<T> of_encoded;
  Out<T> of_keys;
  Out<T> of_h0;
  Out<T> of_weight;
  Out<T> of_context_weight;
  Out<T> of_bias;
  Out<T> of_query_weight;
  Out<T> of_query_bias;
  Out<T> of_score_weight;
};

// Return the layer: that of lstm_unit or that of gru_unit.
template <typename T>
LstmLayer<T> DecoderLstm(const OpContext& context, const DecoderSizes& sizes) {
  return {.cell = {.size = sizes.hidden,
                   .gate = RecurrentActivation::kSigmoid,
                   .cell = RecurrentActivation::kTanh,
                   .candidate = RecurrentActivation::kTanh,
                   .order = {.candidate = 3, .input = 0, .forget = 1, .output = 2}},
          .forget_bias = static_cast<T>(context.Attr<float>("forget_bias")),
          .capacity = sizes.most};
}
template <typename T>
GruLayer<T> DecoderGru(const DecoderSizes& sizes) {
  return {.cell = {.size = sizes.hidden,
                   .gate = RecurrentActivation::kSigmoid,
                   .candidate = RecurrentActivation::kTanh},
          .capacity = sizes.most};
}

// Returns a kernel of the class template, with the steps of the cell that the attribute names.
template <typename T, template <typename, typename> class KernelOf, typename LstmSteps,
          typename GruSteps>
std::unique_ptr<Kernel> PrepareDecoder(PrepareContext& context) {
  const DecoderSizes sizes(context);
  using Wide = WideType<T>;
  if (DecodesWithLstm(context))
    return std::make_unique<KernelOf<T, LstmSteps>>(context, DecoderLstm<Wide>(context, sizes));
  return std::make_unique<KernelOf<T, GruSteps>>(context, DecoderGru<Wide>(sizes));
}

}  // namespace skiff
