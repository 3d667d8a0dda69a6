#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "tests/operators/sequence/recurrent_reference.h"

namespace skiff::harness {
namespace {

struct Rnn {
  std::string mode = "LSTM";
  int64_t layers = 1;
  bool is_bidirec = false;
  int64_t time = 4;
  int64_t batch = 3;
  int64_t width = 2;
  int64_t size = 3;
  std::vector<int64_t> lengths = {};  // empty: no SequenceLength
  DType lengths_dtype = DType::kInt32;
  float dropout = 0;
  bool is_test = false;
  int32_t seed = 0;

  int64_t directions() const { return is_bidirec ? 2 : 1; }
  int64_t passes() const { return layers * directions(); }
  int64_t gates() const { return size * (mode == "LSTM" ? 4 : mode == "GRU" ? 3 : 1); }
  size_t states() const { return mode == "LSTM" ? 2 : 1; }
  int64_t Length(size_t sequence) const { return lengths.empty() ? time : lengths[sequence]; }
};

// The rows of a sequence.
using Sequence = std::vector<Numbers>;

// Returns matrix * column + bias.
Numbers Product(const Array& matrix, const Numbers& column, const Array& bias) {
  Numbers product(bias.values.begin(), bias.values.end());
  for (size_t i = 0; i < product.size(); ++i) {
    for (size_t p = 0; p < column.size(); ++p)
      product[i] += matrix.values[i * column.size() + p] * column[p];
  }
  return product;
}

// The next hidden state, and the next cell of an LSTM, from the sums of the input x and of the
// hidden state h.
void Step(const Rnn& rnn, const Numbers& x, const Numbers& g, Numbers* h, Numbers* c) {
  const auto size = static_cast<size_t>(rnn.size);
  const auto sigmoid = [&](size_t i) { return Activated("sigmoid", x[i] + g[i]); };
  for (size_t i = 0; i < size; ++i) {
    if (rnn.mode == "LSTM") {
      const double candidate = std::tanh(x[2 * size + i] + g[2 * size + i]);
      (*c)[i] = sigmoid(i) * candidate + sigmoid(size + i) * (*c)[i];
      (*h)[i] = sigmoid(3 * size + i) * std::tanh((*c)[i]);
    } else if (rnn.mode == "GRU") {
      const double update = sigmoid(size + i);
      const double candidate = std::tanh(x[2 * size + i] + sigmoid(i) * g[2 * size + i]);
      (*h)[i] = (1 - update) * candidate + update * (*h)[i];
    } else {
      (*h)[i] = Activated(rnn.mode == "RNN_RELU" ? "relu" : "tanh", x[i] + g[i]);
    }
  }
}

Numbers StateOf(const Arrays& inputs, size_t i, size_t row, int64_t size) {
  return RowOf({{"PreState", {inputs.at("PreState")[i]}}}, "PreState", row,
               static_cast<size_t>(size));
}

// Runs a direction of a layer over a sequence. Returns its hidden states in the order of the rows.
Sequence RunPass(const Rnn& rnn, const Arrays& inputs, size_t pass, size_t sequence,
                 const Sequence& rows, std::vector<Array>* states) {
  const std::vector<Array>& weights = inputs.at("WeightList");
  const size_t biases = weights.size() / 2;
  const size_t row = pass * static_cast<size_t>(rnn.batch) + sequence;
  Numbers h = StateOf(inputs, 0, row, rnn.size);
  Numbers c = rnn.states() == 2 ? StateOf(inputs, 1, row, rnn.size) : Numbers();
  const bool is_reverse = rnn.is_bidirec && pass % 2 == 1;
  Sequence hidden(rows.size());
  for (size_t k = 0; k < rows.size(); ++k) {
    const size_t t = is_reverse ? rows.size() - 1 - k : k;
    Step(rnn, Product(weights[2 * pass], rows[t], weights[biases + 2 * pass]),
         Product(weights[2 * pass + 1], h, weights[biases + 2 * pass + 1]), &h, &c);
    hidden[t] = h;
  }
  SetRow(&(*states)[0], row, h);
  if (rnn.states() == 2) SetRow(&(*states)[1], row, c);
  return hidden;
}

// `mask` is what dropout keeps of each layer: [layers - 1][time][batch][width], or empty. All
// sequences are then equally long.
Arrays RnnReference(const Rnn& rnn, const Arrays& inputs, const std::vector<double>& mask) {
  const Array& input = inputs.at("Input")[0];
  const auto batch = static_cast<size_t>(rnn.batch);
  const auto width = static_cast<size_t>(rnn.size * rnn.directions());
  std::vector<Array> states = inputs.at("PreState");
  Array out = Values({rnn.time, rnn.batch, static_cast<int64_t>(width)},
                     Numbers(static_cast<size_t>(rnn.time) * batch * width));
  for (size_t s = 0; s < batch; ++s) {
    Sequence rows;
    for (size_t t = 0; t < static_cast<size_t>(rnn.Length(s)); ++t) {
      rows.push_back(
          RowOf({{"Input", {input}}}, "Input", t * batch + s, static_cast<size_t>(rnn.width)));
    }
    for (size_t layer = 0; layer < static_cast<size_t>(rnn.layers); ++layer) {
      Sequence next(rows.size());
      for (size_t d = 0; d < static_cast<size_t>(rnn.directions()); ++d) {
        const size_t pass = layer * static_cast<size_t>(rnn.directions()) + d;
        const Sequence hidden = RunPass(rnn, inputs, pass, s, rows, &states);
        for (size_t t = 0; t < rows.size(); ++t)
          next[t].insert(next[t].end(), hidden[t].begin(), hidden[t].end());
      }
      rows = std::move(next);
      if (mask.empty() || layer + 1 == static_cast<size_t>(rnn.layers)) continue;
      for (size_t t = 0; t < rows.size(); ++t) {
        const size_t first = ((layer * static_cast<size_t>(rnn.time) + t) * batch + s) * width;
        for (size_t i = 0; i < width; ++i)
          rows[t][i] *= mask[first + i] / (1 - static_cast<double>(rnn.dropout));
      }
    }
    for (size_t t = 0; t < rows.size(); ++t) SetRow(&out, t * batch + s, rows[t]);
  }
  return {{"Out", {out}}, {"State", states}};
}

Arrays InputsOf(const Rnn& rnn) {
  Arrays inputs = {{"Input", {Uniform({rnn.time, rnn.batch, rnn.width}, 1, -2, 2)}}};
  for (size_t i = 0; i < rnn.states(); ++i)
    inputs["PreState"].push_back(Uniform({rnn.passes(), rnn.batch, rnn.size}, 2 + i));
  uint64_t seed = 10;
  std::vector<Array>& weights = inputs["WeightList"];
  const double bound = 1 / std::sqrt(static_cast<double>(rnn.size));
  for (int64_t pass = 0; pass < rnn.passes(); ++pass) {
    const int64_t width = pass < rnn.directions() ? rnn.width : rnn.directions() * rnn.size;
    weights.push_back(Uniform({rnn.gates(), width}, seed++, -bound, bound));
    weights.push_back(Uniform({rnn.gates(), rnn.size}, seed++, -bound, bound));
  }
  for (int64_t i = 0; i < 2 * rnn.passes(); ++i)
    weights.push_back(Uniform({rnn.gates()}, seed++, -bound, bound));
  if (!rnn.lengths.empty()) {
    inputs["SequenceLength"] = {
        Values({rnn.batch}, Numbers(rnn.lengths.begin(), rnn.lengths.end()), rnn.lengths_dtype)};
  }
  return inputs;
}

OpCase RnnCase(const std::string& name, const Rnn& rnn) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "rnn";
  op_case.bfloat16_tolerance = kRecurrentBFloat16;
  op_case.inputs = InputsOf(rnn);
  op_case.attrs = {{"mode", rnn.mode},
                   {"num_layers", static_cast<int32_t>(rnn.layers)},
                   {"is_bidirec", rnn.is_bidirec},
                   {"input_size", static_cast<int32_t>(rnn.width)},
                   {"hidden_size", static_cast<int32_t>(rnn.size)},
                   {"dropout_prob", rnn.dropout},
                   {"is_test", rnn.is_test},
                   {"seed", rnn.seed}};
  op_case.reference = [rnn](const Arrays& inputs) { return RnnReference(rnn, inputs, {}); };
  op_case.outputs = {
      {"Out", 1}, {"DropoutState", 1}, {"State", static_cast<int>(rnn.states())}, {"Reserve", 1}};
  op_case.gradients = {"Input", "PreState", "WeightList"};
  return op_case;
}

void CheckClose(const Array& found, const Array& expected, double tolerance,
                const std::string& name) {
  for (size_t i = 0; i < expected.values.size(); ++i) {
    SKIFF_ENFORCE(std::abs(found.values[i] - expected.values[i]) <= tolerance, kInvalidArgument,
                  name, "[", i, "] = ", found.values[i], ", expected ", expected.values[i]);
  }
}

// With dropout: what comes out agrees with DropoutState, each layer's own.
OpCase DropoutCase(const std::string& name, const Rnn& rnn) {
  OpCase op_case = RnnCase(name, rnn);
  op_case.reference = nullptr;
  op_case.check = [rnn](const Arrays& inputs, const Arrays& outputs) {
    const std::vector<double>& mask = outputs.at("DropoutState")[0].values;
    const Arrays expected = RnnReference(rnn, inputs, mask);
    const Array& out = outputs.at("Out")[0];
    const double tolerance = out.dtype == DType::kBFloat16 ? kRecurrentBFloat16 : 1e-5;
    CheckClose(out, expected.at("Out")[0], tolerance, "Out");
    CheckClose(outputs.at("State")[0], expected.at("State")[0], tolerance, "State");
    double kept = 0;
    for (const double value : mask) kept += value;
    const auto count = static_cast<double>(mask.size());
    const double p = static_cast<double>(rnn.dropout);
    SKIFF_ENFORCE(std::abs(kept - (1 - p) * count) <= 5 * std::sqrt(p * (1 - p) * count),
                  kOutOfRange, kept, " of ", count, " elements kept with probability ", 1 - p);
    const auto half = static_cast<std::ptrdiff_t>(mask.size() / 2);
    SKIFF_ENFORCE(
        rnn.layers != 3 || !std::equal(mask.begin(), mask.begin() + half, mask.begin() + half),
        kInvalidArgument, "two layers drop the same elements");
  };
  return op_case;
}

}  // namespace

void AddRnnCases(CaseList& cases) {
  for (const std::string mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}) {
    const auto add = [&](const std::string& name, Rnn rnn) {
      rnn.mode = mode;
      cases.push_back(RnnCase(mode + "_" + name, rnn));
    };
    add("plain", {});
    add("both_directions", {.is_bidirec = true});
    add("layers", {.layers = 3});
    add("lengths", {.lengths = {2, 4, 1}});
    add("layers_both_lengths",
        {.layers = 2, .is_bidirec = true, .batch = 4, .lengths = {2, 0, 4, 3}});
    add("no_rows", {.layers = 2, .time = 0, .batch = 2});
    add("empty_sequences", {.is_bidirec = true, .time = 2, .batch = 2, .lengths = {0, 0}});
    add("no_sequences", {.layers = 2, .batch = 0});
    // More rows in a step, and more columns, than a block of sums in registers has.
    add("wide", {.is_bidirec = true,
                 .time = 2,
                 .batch = 17,
                 .width = 5,
                 .size = 19,
                 .lengths = {1, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 0, 2}});
  }
  cases.push_back(
      RnnCase("lengths_of_int64", {.lengths = {4, 1, 3}, .lengths_dtype = DType::kInt64}));
  cases.push_back(RnnCase("no_input_columns", {.width = 0}));
  cases.push_back(RnnCase("one_element", {.time = 1, .batch = 1, .width = 1, .size = 1}));
  // More rows than a block of a product has, and more than are summed at a time.
  cases.push_back(RnnCase(
      "long",
      {.mode = "GRU", .time = 100, .batch = 3, .width = 3, .size = 2, .lengths = {100, 99, 90}}));
  cases.back().gradients = {"PreState", "WeightList"};
  cases.push_back(RnnCase("without_reserve", {.layers = 4, .is_bidirec = true, .is_test = true}));
  cases.back().outputs = {{"Out", 1}, {"State", 2}};
  cases.back().gradients.clear();
  cases.push_back(RnnCase("gru_without_reserve",
                          {.mode = "GRU", .layers = 3, .lengths = {1, 4, 2}, .is_test = true}));
  cases.back().outputs = {{"Out", 1}, {"State", 1}};
  cases.back().gradients.clear();
  cases.push_back(RnnCase("state_alone", {.layers = 2, .lengths = {4, 2, 3}}));
  cases.back().loss_outputs = {"State"};
  cases.push_back(RnnCase("dropout_in_test", {.layers = 2, .dropout = 0.5f, .is_test = true}));
  cases.push_back(RnnCase("dropout_of_one_layer", {.dropout = 0.5f}));
  cases.push_back(DropoutCase("dropout", {.layers = 3, .is_bidirec = true, .dropout = 0.4f}));
  cases.push_back(
      DropoutCase("dropout_seed", {.mode = "GRU", .layers = 2, .dropout = 0.25f, .seed = 5}));
  // The mask is in batch order, which the reference doesn't know.
  cases.push_back(
      RnnCase("dropout_lengths", {.layers = 2, .lengths = {4, 2, 3}, .dropout = 0.25f}));
  cases.back().reference = nullptr;
  cases.back().check = [](const Arrays&, const Arrays&) {};
  for (const std::string mode : {"LSTM", "GRU"}) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < 32; ++i) lengths.push_back(8 + i * 37 % 25);
    cases.push_back(RnnCase(mode + "_benchmark", {.mode = mode,
                                                  .layers = 2,
                                                  .time = 32,
                                                  .batch = 32,
                                                  .width = 512,
                                                  .size = 512,
                                                  .lengths = lengths}));
    cases.back().benchmark_only = true;
  }
}

}  // namespace skiff::harness
