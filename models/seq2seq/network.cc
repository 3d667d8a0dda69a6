#include "models/seq2seq/network.h"

#include <cmath>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/attention_decoder.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/initializer.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "models/common/network_sizes.h"

namespace skiff::models {
namespace {

// The names of parameters that a step and the op for all steps share.
constexpr const char* kQuery = "attention.query";
constexpr const char* kScore = "attention.v";
constexpr const char* kCellInput = "decoder.in";  // of a gated unit
constexpr const char* kCellWeight = "decoder.w";
constexpr const char* kCellBias = "decoder.b";
// Of an LSTM. A gate that is open at first lets gradients pass (Jozefowicz, Zaremba, Sutskever
// 2015).
constexpr float kForgetBias = 1.0f;

void CheckName(const char* option, const std::string& name, const std::string& one,
               const std::string& other) {
  SKIFF_ENFORCE(name == one || name == other, kInvalidArgument, "seq2seq: ", option, " = \"", name,
                "\", expected ", one, " or ", other);
}

void Check(const Seq2SeqOptions& options) {
  CheckSizes("seq2seq", {{"source_tokens", options.source_tokens},
                         {"target_tokens", options.target_tokens},
                         {"embedding", options.embedding},
                         {"hidden", options.hidden},
                         {"layers", options.layers, 1, kMostLayers}});
  CheckName("cell", options.cell, "gru", "lstm");
  CheckName("attention", options.attention, "bahdanau", "luong");
  CheckName("decoder", options.decoder, "attention_decoder", "dynamic_rnn");
  SKIFF_ENFORCE(!options.input_feeding || options.attention == "luong", kInvalidArgument,
                "seq2seq: input_feeding with attention = ", options.attention,
                ", expected attention = luong");
  SKIFF_ENFORCE(options.label_smoothing >= 0 && options.label_smoothing < 1, kInvalidArgument,
                "seq2seq: label_smoothing = ", options.label_smoothing, ", expected one in [0, 1)");
  SKIFF_ENFORCE(options.dropout >= 0 && options.dropout < 1, kInvalidArgument,
                "seq2seq: dropout = ", options.dropout, ", expected one in [0, 1)");
}

Variable Product(const Variable& x, int64_t size, const std::string& name) {
  return layers::Fc(x, size, {.param_attr = {.name = name + ".w"}, .bias_attr = false});
}

Variable Linear(const Variable& x, int64_t size, const std::string& name) {
  return layers::Fc(
      x, size, {.param_attr = {.name = name + ".w"}, .bias_attr = ParamAttr{.name = name + ".b"}});
}

Variable SideBySide(const Variables& parts) {
  return parts.size() == 1 ? parts[0] : layers::Concat(parts, 1);
}

}  // namespace

Seq2SeqNetwork::Seq2SeqNetwork(const Seq2SeqOptions& options) : options_(options) {
  Check(options);
}

Encoded Seq2SeqNetwork::Encode(const Variable& ids) const {
  Variable states = Table(ids, options_.source_tokens, kSourceTable);
  for (int64_t layer = 1; layer <= options_.layers; ++layer) {
    // The first layer's parameters have no number, as in models from before there were more.
    const std::string name = layer == 1 ? "encoder" : StrCat("encoder", layer);
    const Variable x = Dropped(states);
    Variables directions = {EncodeDirection(x, false, name + ".forward")};
    if (options_.bidirectional) {
      directions.push_back(EncodeDirection(x, true, name + ".backward"));
    }
    states = SideBySide(directions);
  }
  return {.states = states, .keys = Product(states, options_.hidden, "attention.keys")};
}

Variable Seq2SeqNetwork::EncodeDirection(const Variable& x, bool is_reverse,
                                         const std::string& name) const {
  const Variable gates = Product(x, (is_lstm() ? 4 : 3) * options_.hidden, name + ".in");
  if (is_lstm()) {
    return layers::DynamicLstm(gates, {.size = options_.hidden,
                                       .use_peepholes = false,
                                       .is_reverse = is_reverse,
                                       .param_attr = {.name = name + ".w"},
                                       .bias_attr = {.name = name + ".b"}})
        .hidden;
  }
  return layers::DynamicGru(gates, {.size = options_.hidden,
                                    .is_reverse = is_reverse,
                                    .param_attr = {.name = name + ".w"},
                                    .bias_attr = ParamAttr{.name = name + ".b"}});
}

Variables Seq2SeqNetwork::FirstState(const Encoded& encoded) const {
  Variable all_read;
  if (options_.bidirectional) {
    const Variable first = layers::SequencePool(encoded.states, "FIRST");
    all_read = layers::Slice(
        first, {.axes = {1}, .starts = {options_.hidden}, .ends = {2 * options_.hidden}});
  } else {
    all_read = layers::SequencePool(encoded.states, "LAST");
  }
  Variables state = {layers::Tanh(Linear(all_read, options_.hidden, "decoder.first"))};
  if (is_lstm()) state.push_back(Linear(all_read, options_.hidden, "decoder.first_cell"));
  if (options_.input_feeding) {
    state.push_back(layers::FillConstantBatchSizeLike(all_read, {-1, options_.embedding},
                                                      DType::kFloat32, 0.0));
  }
  return state;
}

Variable Seq2SeqNetwork::Embed(const Variable& ids) const {
  return Dropped(Table(ids, options_.target_tokens, kTargetTable));
}

Decoded Seq2SeqNetwork::Step(const Variable& word, const Variables& before, const Encoded& encoded,
                             AttentionOps ops) const {
  if (!is_luong()) {
    const Attended attended = Attend(before[0], encoded, ops);
    const Variables state = Cell(SideBySide({word, attended.context}), before);
    return {.state = state, .outputs = {state[0], attended.context}, .weights = attended.weights};
  }
  Variables read = {word};
  if (options_.input_feeding) read.push_back(before.back());
  Variables state = Cell(SideBySide(read), before);
  const Attended attended = Attend(state[0], encoded, ops);
  Variables outputs = {state[0], attended.context};
  if (options_.input_feeding) {
    outputs = {Readout(outputs)};
    state.push_back(outputs[0]);
  }
  return {.state = state, .outputs = outputs, .weights = attended.weights};
}

Seq2SeqNetwork::Attended Seq2SeqNetwork::Attend(const Variable& state, const Encoded& encoded,
                                                AttentionOps ops) const {
  const Variable query = is_luong() ? state : Linear(state, options_.hidden, kQuery);
  if (ops == AttentionOps::kFused) {
    const layers::AttendedSequences attended = layers::SequenceAttention(
        query, encoded.keys, encoded.states,
        {.score = is_luong() ? "dot" : "additive", .score_attr = {.name = StrCat(kScore, ".w")}});
    return {.context = attended.context, .weights = attended.weights};
  }
  const Variable queries = layers::SequenceExpandAs(query, encoded.keys);
  const Variable scores =
      is_luong() ? layers::ReduceSum(queries * encoded.keys, {.dims = {1}, .keep_dim = true})
                 : Product(layers::Tanh(queries + encoded.keys), 1, kScore);
  const Variable weights = layers::SequenceSoftmax(scores);
  return {.context = layers::SequencePool(
              layers::ElementwiseMul(encoded.states, weights, {.axis = 0}), "SUM"),
          .weights = weights};
}

Variables Seq2SeqNetwork::Cell(const Variable& x, const Variables& before) const {
  const ParamAttr weights = {.name = kCellWeight};
  const ParamAttr bias = {.name = kCellBias};
  if (is_lstm()) {
    const layers::LstmStates after =
        layers::LstmUnit(x, before[0], before[1],
                         {.forget_bias = kForgetBias, .param_attr = weights, .bias_attr = bias});
    return {after.hidden, after.cell};
  }
  return {layers::GruUnit(Product(x, 3 * options_.hidden, kCellInput), before[0],
                          {.param_attr = weights, .bias_attr = bias})};
}

Variables Seq2SeqNetwork::Steps(const Variable& words, const Variables& first,
                                const Encoded& encoded) const {
  const bool is_op = options_.decoder == "attention_decoder" && !options_.input_feeding;
  return is_op ? StepsByOp(words, first, encoded) : StepsByLayers(words, first, encoded);
}

Variables Seq2SeqNetwork::StepsByOp(const Variable& words, const Variables& first,
                                    const Encoded& encoded) const {
  layers::AttentionDecoderOptions options = {
      .size = options_.hidden,
      .cell = options_.cell,
      .score = is_luong() ? "dot" : "additive",
      .attends = is_luong() ? "after" : "before",
      .initial_hidden = first[0],
      .param_attr = {.name = is_lstm() ? kCellWeight : StrCat(kCellInput, ".w")},
      .hidden_attr = {.name = kCellWeight},
      .bias_attr = ParamAttr{.name = kCellBias},
      .query_attr = false,
      .query_bias_attr = false,
      .score_attr = {.name = StrCat(kScore, ".w")}};
  if (is_lstm()) {
    options.initial_cell = first[1];
    options.forget_bias = kForgetBias;
  }
  if (!is_luong()) {
    options.query_attr = ParamAttr{.name = StrCat(kQuery, ".w")};
    options.query_bias_attr = ParamAttr{.name = StrCat(kQuery, ".b")};
  }
  const layers::AttentionDecoderStates states =
      layers::AttentionDecoder(words, encoded.states, encoded.keys, options);
  return {states.hidden, states.context};
}

Variables Seq2SeqNetwork::StepsByLayers(const Variable& words, const Variables& first,
                                        const Encoded& encoded) const {
  layers::DynamicRnn decoder;
  decoder.Body([&] {
    const Variable word = decoder.StepInput(words);
    Variables before;
    for (const Variable& state : first) before.push_back(decoder.Memory(state));
    const Encoded seen = {.states = decoder.StaticInput(encoded.states),
                          .keys = decoder.StaticInput(encoded.keys)};
    const Decoded decoded = Step(word, before, seen, AttentionOps::kFused);
    for (size_t i = 0; i < before.size(); ++i) decoder.UpdateMemory(before[i], decoded.state[i]);
    for (const Variable& output : decoded.outputs) decoder.StepOutput(output);
  });
  return decoder.Outputs();
}

Variable Seq2SeqNetwork::Scores(const Variables& outputs, const Variable& word) const {
  Variable readout = outputs[0];
  if (!options_.input_feeding) {
    Variables parts = outputs;
    if (!is_luong()) parts.push_back(word);
    readout = Readout(parts);
  }
  readout = Dropped(readout);
  if (!options_.tied_embeddings) return Linear(readout, options_.target_tokens, "scores");
  const Variable table = layers::CreateParameter({options_.target_tokens, options_.embedding},
                                                 DType::kFloat32, TableAttr(kTargetTable));
  const Variable bias =
      layers::CreateParameter({options_.target_tokens}, DType::kFloat32,
                              {.name = "scores.b", .initializer = initializer::Constant(0.0f)});
  return layers::MatMul(readout, table, {.transpose_y = true}) + bias;
}

Variable Seq2SeqNetwork::Readout(const Variables& parts) const {
  return layers::Tanh(Linear(SideBySide(parts), options_.embedding, "readout"));
}

ParamAttr Seq2SeqNetwork::TableAttr(const char* name) const {
  const auto width = static_cast<float>(options_.embedding);
  const float stddev = GivesScores(name) ? 1 / std::sqrt(width) : 1;
  return {.name = name, .initializer = initializer::Normal({.stddev = stddev})};
}

Variable Seq2SeqNetwork::Table(const Variable& ids, int64_t rows, const char* name) const {
  const Variable vectors = layers::Embedding(
      ids, {.rows = rows, .width = options_.embedding, .param_attr = TableAttr(name)});
  if (!GivesScores(name)) return vectors;
  return vectors * std::sqrt(static_cast<double>(options_.embedding));
}

Variable Seq2SeqNetwork::Dropped(const Variable& x) const {
  if (options_.dropout == 0) return x;
  return layers::Dropout(x, options_.dropout);
}

}  // namespace skiff::models
