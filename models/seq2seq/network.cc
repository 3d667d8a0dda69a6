#include "models/seq2seq/network.h"

#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor.h"

namespace skiff::models {
namespace {

void Check(const Seq2SeqOptions& options) {
  for (const auto& [name, size] : {std::pair("source_tokens", options.source_tokens),
                                   {"target_tokens", options.target_tokens},
                                   {"embedding", options.embedding},
                                   {"hidden", options.hidden}}) {
    SKIFF_ENFORCE(size >= 1, kInvalidArgument, "seq2seq: ", name, " = ", size,
                  ", expected at least 1");
  }
}

Variable Product(const Variable& x, int64_t size, const std::string& name) {
  return layers::Fc(x, size, {.param_attr = {.name = name + ".w"}, .bias_attr = std::nullopt});
}

Variable Linear(const Variable& x, int64_t size, const std::string& name) {
  return layers::Fc(
      x, size, {.param_attr = {.name = name + ".w"}, .bias_attr = ParamAttr{.name = name + ".b"}});
}

}  // namespace

Seq2SeqNetwork::Seq2SeqNetwork(const Seq2SeqOptions& options) : options_(options) {
  Check(options);
}

Encoded Seq2SeqNetwork::Encode(const Variable& ids) const {
  const Variable words = Dropped(Table(ids, options_.source_tokens, kSourceTable));
  std::vector<Variable> directions;
  for (const bool is_reverse : {false, true}) {
    const std::string name = is_reverse ? "encoder.backward" : "encoder.forward";
    directions.push_back(layers::DynamicGru(Product(words, 3 * options_.hidden, name + ".in"),
                                            {.size = options_.hidden,
                                             .is_reverse = is_reverse,
                                             .param_attr = {.name = name + ".w"},
                                             .bias_attr = ParamAttr{.name = name + ".b"}}));
  }
  const Variable states = layers::Concat(directions, 1);
  return {.states = states, .keys = Product(states, options_.hidden, "attention.keys")};
}

Variable Seq2SeqNetwork::FirstState(const Encoded& encoded) const {
  const Variable first = layers::SequencePool(encoded.states, "FIRST");
  const Variable backward = layers::Slice(
      first, {.axes = {1}, .starts = {options_.hidden}, .ends = {2 * options_.hidden}});
  return layers::Tanh(Linear(backward, options_.hidden, "decoder.first"));
}

Variable Seq2SeqNetwork::Embed(const Variable& ids) const {
  return Dropped(Table(ids, options_.target_tokens, kTargetTable));
}

Attended Seq2SeqNetwork::Attend(const Variable& state, const Encoded& encoded) const {
  const Variable query = Linear(state, options_.hidden, "attention.query");
  const Variable mixed = layers::Tanh(layers::SequenceExpandAs(query, encoded.keys) + encoded.keys);
  const Variable weights = layers::SequenceSoftmax(Product(mixed, 1, "attention.v"));
  return {.context = layers::SequencePool(
              layers::ElementwiseMul(encoded.states, weights, {.axis = 0}), "SUM"),
          .weights = weights};
}

Variable Seq2SeqNetwork::Step(const Variable& word, const Variable& context,
                              const Variable& before) const {
  const Variable gates =
      Product(layers::Concat({word, context}, 1), 3 * options_.hidden, "decoder.in");
  return layers::GruUnit(
      gates, before,
      {.param_attr = {.name = "decoder.w"}, .bias_attr = ParamAttr{.name = "decoder.b"}});
}

Variable Seq2SeqNetwork::Scores(const Variable& state, const Variable& context,
                                const Variable& word) const {
  const Variable readout = layers::Tanh(
      Linear(layers::Concat({state, context, word}, 1), options_.embedding, "readout"));
  return Linear(Dropped(readout), options_.target_tokens, "scores");
}

Variable Seq2SeqNetwork::Table(const Variable& ids, int64_t rows, const char* name) const {
  return layers::Embedding(
      ids, {.rows = rows, .width = options_.embedding, .param_attr = {.name = name}});
}

Variable Seq2SeqNetwork::Dropped(const Variable& x) const {
  if (options_.dropout == 0) return x;
  return layers::Dropout(x, options_.dropout, {.implementation = "upscale_in_train"});
}

}  // namespace skiff::models
