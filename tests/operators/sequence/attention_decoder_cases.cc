#include <cmath>
#include <string>
#include <vector>

#include "tests/operators/sequence/recurrent_reference.h"

namespace skiff::harness {
namespace {

struct Decoder {
  std::string cell = "gru";
  std::string score = "additive";
  std::string attends = "before";
  double forget_bias = 0;
  bool has_bias = true;
  bool has_start = true;
  bool has_query_weight = true;
  bool has_query_bias = true;
};

struct DecoderSizes {
  int64_t hidden;
  int64_t width;      // of the encoder's states
  int64_t key_width;  // of queries and keys
};

struct DecoderAttention {
  Numbers weights;
  Numbers context;
};

// Attention over rows [begin, end) of Encoded and Keys.
DecoderAttention AttendInDecoder(const std::string& score, const Arrays& inputs,
                                 const Numbers& query, size_t begin, size_t end) {
  const Array& encoded = inputs.at("Encoded")[0];
  const auto width = static_cast<size_t>(encoded.shape[1]);
  DecoderAttention attention{.weights = {}, .context = Numbers(width)};
  double sum = 0;
  for (size_t token = begin; token < end; ++token) {
    double product = 0;
    for (size_t i = 0; i < query.size(); ++i) {
      const double key = inputs.at("Keys")[0].values[token * query.size() + i];
      product += score == "dot" ? query[i] * key
                                : inputs.at("ScoreWeight")[0].values[i] * std::tanh(query[i] + key);
    }
    attention.weights.push_back(std::exp(product));
    sum += attention.weights.back();
  }
  for (size_t token = begin; token < end; ++token) {
    double& weight = attention.weights[token - begin];
    weight /= sum;
    for (size_t i = 0; i < width; ++i)
      attention.context[i] += weight * encoded.values[token * width + i];
  }
  return attention;
}

void AddTo(Numbers* to, const Numbers& from) {
  for (size_t i = 0; i < to->size(); ++i) (*to)[i] += from[i];
}

// The state after `h`. `g` is the input of the cell with the bias, and then the activated gates.
Numbers GruStep(const Array& weight, const Numbers& h, Numbers* g) {
  const size_t size = h.size();
  AddTo(g, [&] {
    Numbers product = Times(h, weight, 0, 2 * size, 0, 2 * size);
    product.resize(3 * size);
    return product;
  }());
  for (size_t i = 0; i < 2 * size; ++i) (*g)[i] = Activated("sigmoid", (*g)[i]);
  Numbers reset = h;
  for (size_t i = 0; i < size; ++i) reset[i] *= (*g)[size + i];
  const Numbers product = Times(reset, weight, 2 * size * size, size, 0, size);
  Numbers next = h;
  for (size_t i = 0; i < size; ++i) {
    double& candidate = (*g)[2 * size + i];
    candidate = std::tanh(candidate + product[i]);
    next[i] += (*g)[i] * (candidate - h[i]);
  }
  return next;
}

// The same, which also updates the cell.
Numbers LstmStep(const Array& weight, double forget_bias, const Numbers& h, Numbers* cell,
                 Numbers* g) {
  const size_t size = h.size();
  AddTo(g, Times(h, weight, 0, 4 * size, 0, 4 * size));
  for (size_t i = size; i < 2 * size; ++i) (*g)[i] += forget_bias;
  for (size_t i = 0; i < 4 * size; ++i)
    (*g)[i] = Activated(i < 3 * size ? "sigmoid" : "tanh", (*g)[i]);
  Numbers next(size);
  for (size_t i = 0; i < size; ++i) {
    (*cell)[i] = (*g)[size + i] * (*cell)[i] + (*g)[i] * (*g)[3 * size + i];
    next[i] = (*g)[2 * size + i] * std::tanh((*cell)[i]);
  }
  return next;
}

Arrays AttentionDecoderReference(const Decoder& decoder, const Arrays& inputs) {
  const Array& input = inputs.at("Input")[0];
  const Array& weight = inputs.at("Weight")[0];
  const bool attends_before = decoder.attends == "before";
  const auto size = static_cast<size_t>(weight.shape[0]);
  const auto width = static_cast<size_t>(inputs.at("Encoded")[0].shape[1]);
  const auto gates = static_cast<size_t>(weight.shape[1]);
  const auto key_width = static_cast<size_t>(inputs.at("Keys")[0].shape[1]);
  const std::vector<uint64_t>& tokens = inputs.at("Encoded")[0].lod.back();
  const int64_t rows = input.shape[0];
  Array hidden = ZeroRows(rows, size), cells = hidden, activated = hidden;
  Array contexts = ZeroRows(rows, width), batch_gates = ZeroRows(rows, gates);
  Array queries = ZeroRows(rows, key_width);
  Numbers weights, h, c;
  std::vector<int64_t> lengths(tokens.size() - 1);
  for (const Visit& visit : Visits(input, false)) {
    if (visit.is_first) {
      h = RowOf(inputs, "H0", visit.sequence, size);
      c = RowOf(inputs, "C0", visit.sequence, size);
    }
    Numbers query;
    DecoderAttention attention;
    const auto attend = [&] {
      query = h;
      if (decoder.has_query_weight)
        query = Times(h, inputs.at("QueryWeight")[0], 0, key_width, 0, key_width);
      AddTo(&query, RowOf(inputs, "QueryBias", 0, key_width));
      attention = AttendInDecoder(decoder.score, inputs, query, tokens[visit.sequence],
                                  tokens[visit.sequence + 1]);
    };
    Numbers g = RowOf(inputs, "Input", visit.row, gates);
    AddTo(&g, RowOf(inputs, "Bias", 0, gates));
    if (attends_before) {
      attend();
      AddTo(&g, Times(attention.context, inputs.at("ContextWeight")[0], 0, gates, 0, gates));
    }
    h = decoder.cell == "lstm" ? LstmStep(weight, decoder.forget_bias, h, &c, &g)
                               : GruStep(weight, h, &g);
    if (!attends_before) attend();
    SetRow(&hidden, visit.row, h);
    SetRow(&contexts, visit.row, attention.context);
    SetRow(&batch_gates, visit.batch_row, g);
    SetRow(&queries, visit.batch_row, query);
    SetRow(&cells, visit.row, c);
    for (double& number : c) number = std::tanh(number);
    SetRow(&activated, visit.batch_row, c);
    c = RowOf({{"C", {cells}}}, "C", visit.row, size);
    weights.insert(weights.end(), attention.weights.begin(), attention.weights.end());
    lengths[visit.sequence] += static_cast<int64_t>(attention.weights.size());
  }
  hidden.lod = cells.lod = contexts.lod = input.lod;
  const auto pairs = static_cast<int64_t>(weights.size());
  Arrays outputs = {{"Hidden", {hidden}},
                    {"Context", {contexts}},
                    {"AttentionWeights", {Ragged(Values({pairs}, weights), lengths)}},
                    {"BatchGate", {batch_gates}},
                    {"BatchQuery", {queries}}};
  if (decoder.cell == "lstm") {
    outputs["Cell"] = {cells};
    outputs["BatchCellPreAct"] = {activated};
  }
  return outputs;
}

// A decoder of words of these numbers over sentences of those numbers of tokens.
OpCase AttentionDecoderCase(const std::string& name, const Decoder& decoder,
                            const DecoderSizes& sizes, const std::vector<int64_t>& words,
                            const std::vector<int64_t>& tokens) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "attention_decoder";
  op_case.bfloat16_tolerance = kRecurrentBFloat16;
  const bool is_lstm = decoder.cell == "lstm";
  const int64_t hidden = sizes.hidden;
  const int64_t gates = (is_lstm ? 4 : 3) * hidden;
  const auto sequences = static_cast<int64_t>(words.size());
  const auto add = [&](const std::string& slot, const Array& array) {
    op_case.inputs[slot] = {array};
    op_case.gradients.push_back(slot);
  };
  int64_t rows = 0, source_rows = 0;
  for (const int64_t length : words) rows += length;
  for (const int64_t length : tokens) source_rows += length;
  add("Input", Ragged(Uniform({rows, gates}, 1, -2, 2), words));
  add("Encoded", Ragged(Uniform({source_rows, sizes.width}, 2), tokens));
  add("Keys", Ragged(Uniform({source_rows, sizes.key_width}, 3), tokens));
  add("Weight", Uniform({hidden, gates}, 4, -0.5, 0.5));
  if (decoder.attends == "before")
    add("ContextWeight", Uniform({sizes.width, gates}, 5, -0.5, 0.5));
  if (decoder.has_bias) add("Bias", Uniform({1, gates}, 6));
  if (decoder.has_start) add("H0", Uniform({sequences, hidden}, 7));
  if (decoder.has_start && is_lstm) add("C0", Uniform({sequences, hidden}, 8));
  if (decoder.has_query_weight)
    add("QueryWeight", Uniform({hidden, sizes.key_width}, 9, -0.5, 0.5));
  if (decoder.has_query_bias) add("QueryBias", Uniform({sizes.key_width}, 10));
  if (decoder.score == "additive") add("ScoreWeight", Uniform({sizes.key_width, 1}, 11));
  op_case.attrs = {{"cell", decoder.cell},
                   {"score", decoder.score},
                   {"attends", decoder.attends},
                   {"forget_bias", static_cast<float>(decoder.forget_bias)}};
  op_case.reference = [decoder](const Arrays& inputs) {
    return AttentionDecoderReference(decoder, inputs);
  };
  op_case.outputs = {
      {"Hidden", 1}, {"Context", 1}, {"AttentionWeights", 1}, {"BatchGate", 1}, {"BatchQuery", 1}};
  op_case.loss_outputs = {"Hidden", "Context", "AttentionWeights"};
  if (is_lstm) {
    op_case.outputs.insert(op_case.outputs.end(), {{"Cell", 1}, {"BatchCellPreAct", 1}});
    op_case.loss_outputs.emplace_back("Cell");
  }
  return op_case;
}

}  // namespace

void AddAttentionDecoderCases(CaseList& cases) {
  const DecoderSizes small{.hidden = 3, .width = 4, .key_width = 5};
  const std::vector<int64_t> words = {2, 4, 1, 2}, tokens = {3, 1, 5, 2};
  for (const char* cell : {"gru", "lstm"}) {
    for (const char* score : {"additive", "dot"}) {
      const std::string name = std::string(cell) + "_" + score;
      const Decoder decoder{.cell = cell, .score = score};
      const auto add = [&](const char* what, const Decoder& of, const DecoderSizes& sizes,
                           const std::vector<int64_t>& lengths,
                           const std::vector<int64_t>& source_lengths) {
        cases.push_back(AttentionDecoderCase(name + what, of, sizes, lengths, source_lengths));
      };
      add("", decoder, small, words, tokens);
      Decoder bare = decoder;
      bare.has_bias = bare.has_start = bare.has_query_weight = bare.has_query_bias = false;
      add("_bare", bare, {.hidden = 3, .width = 2, .key_width = 3}, words, tokens);
      Decoder after = decoder;
      after.attends = "after";
      add("_after", after, small, words, tokens);
      bare.attends = "after";
      add("_after_bare", bare, {.hidden = 3, .width = 2, .key_width = 3}, {0, 2, 3}, {2, 0, 4});
      add("_one_row_each", decoder, small, {1, 1, 1}, {1, 1, 1});
      add("_equal", decoder, small, {2, 2, 2}, {3, 3, 3});
      add("_empty_sequences", decoder, small, {0, 2, 0, 1, 3}, {2, 0, 0, 3, 1});
      add("_no_words", decoder, small, {0, 0}, {2, 1});
      add("_no_tokens", decoder, small, {2, 1}, {0, 0});
      // Whole vectors and a rest, of every instruction set; more rows in a step than a block of
      // sums in registers has.
      add("_wide", decoder, {.hidden = 19, .width = 83, .key_width = 101},
          std::vector<int64_t>(20, 2), std::vector<int64_t>(20, 3));
    }
  }
  for (const bool has_bias : {false, true}) {
    cases.push_back(AttentionDecoderCase(has_bias ? "forget_bias_and_bias" : "forget_bias",
                                         {.cell = "lstm", .forget_bias = 1.5, .has_bias = has_bias},
                                         small, words, tokens));
  }
  // More columns than a block of threads takes at once, and more tokens than it has warps.
  cases.push_back(AttentionDecoderCase("wider", {}, {.hidden = 2, .width = 300, .key_width = 270},
                                       {1, 2}, {9, 2}));
  cases.push_back(AttentionDecoderCase("unequal", {}, small, {1, 60, 9}, {40, 2, 7}));
  for (const auto& [cell, score] : {std::pair("gru", "additive"), {"lstm", "dot"}}) {
    std::vector<int64_t> lengths, source_lengths;
    for (int64_t i = 0; i < 32; ++i) {
      lengths.push_back(20 + i * 37 % 20);
      source_lengths.push_back(20 + i * 29 % 20);
    }
    cases.push_back(AttentionDecoderCase(
        std::string("benchmark_") + cell, {.cell = cell, .score = score},
        {.hidden = 512, .width = 512, .key_width = 512}, lengths, source_lengths));
    cases.back().benchmark_only = true;
  }
}

}  // namespace skiff::harness
