// Recurrent layers, by the op rnn.
#include <algorithm>
#include <utility>

#include "framework/builder/tensor.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// A kind of cell: where Skiff's gates are among those of ONNX, and what the op calls it.
struct Cell {
  std::vector<size_t> order;
  std::string mode;
  std::vector<std::string> activations;
  bool has_cell_state = false;
};

struct Layer {
  std::string direction;
  int64_t directions = 1;
  int64_t hidden = 0;
  bool batch_first = false;
};

Layer LayerOf(const OnnxNode& node) {
  Layer layer;
  layer.direction = node.String("direction", "forward");
  layer.hidden = node.Int("hidden_size", 0);
  layer.batch_first = node.Int("layout", 0) != 0;
  if (layer.direction == "bidirectional") {
    layer.directions = 2;
  } else if (layer.direction != "forward" && layer.direction != "reverse") {
    node.Invalid("direction = \"", layer.direction, "\"");
  }
  if (layer.direction == "reverse" && node.Has(4)) {
    node.Unsupported("runs backwards over sequences of different lengths");
  }
  if (layer.hidden < 1) node.Invalid("hidden_size = ", layer.hidden);
  if (node.HasAttr("clip")) node.Unsupported("has a clip");
  if (node.Int("input_forget", 0) != 0) node.Unsupported("has input_forget = 1");
  return layer;
}

void CheckActivations(const OnnxNode& node, const Cell& cell, const Layer& layer) {
  const std::vector<std::string> activations = node.StringList("activations");
  if (activations.empty()) return;
  std::vector<std::string> expected;
  for (int64_t i = 0; i < layer.directions; ++i) {
    expected.insert(expected.end(), cell.activations.begin(), cell.activations.end());
  }
  if (activations != expected) node.Unsupported("has other activations than the usual ones");
}

// Part `direction` of an input that has one for each, with the gates in Skiff's order.
Variable Gates(const Variable& all, int64_t direction, int64_t from, const Cell& cell,
               int64_t hidden) {
  const Variable part = layers::Slice(
      all, {.axes = {0}, .starts = {direction}, .ends = {direction + 1}, .decrease_axis = {0}});
  std::vector<Variable> gates;
  for (const size_t gate : cell.order) {
    const int64_t start = from + static_cast<int64_t>(gate) * hidden;
    gates.push_back(
        layers::Slice(part, {.axes = {0}, .starts = {start}, .ends = {start + hidden}}));
  }
  return gates.size() == 1 ? gates[0] : layers::Concat(gates, 0);
}

std::vector<std::string> WeightNames(const OnnxNode& node, const Cell& cell, const Layer& layer) {
  const auto width = static_cast<int64_t>(cell.order.size()) * layer.hidden;
  std::vector<std::string> names;
  std::vector<std::string> biases;
  for (int64_t i = 0; i < layer.directions; ++i) {
    for (const size_t input : {size_t{1}, size_t{2}}) {
      names.push_back(Gates(node.In(input), i, 0, cell, layer.hidden).name());
      const int64_t from = input == 1 ? 0 : width;
      const Variable bias = node.Has(3) ? Gates(node.In(3), i, from, cell, layer.hidden)
                                        : layers::FillConstant({width}, node.In(1).dtype(), 0.0);
      biases.push_back(bias.name());
    }
  }
  names.insert(names.end(), biases.begin(), biases.end());
  return names;
}

// [directions, batch, hidden], zeros for an absent input.
Variable StateOf(const OnnxNode& node, size_t i, const Variable& x, const Layer& layer) {
  if (node.Has(i)) {
    return layer.batch_first ? layers::Transpose(node.In(i), {1, 0, 2}) : node.In(i);
  }
  return layers::FillConstantBatchSizeLike(x, {layer.directions, -1, layer.hidden}, x.dtype(), 0.0,
                                           {.input_dim_idx = 1, .output_dim_idx = 1});
}

void Recur(const OnnxNode& node, const Cell& cell) {
  const Layer layer = LayerOf(node);
  CheckActivations(node, cell, layer);
  Variable x = layer.batch_first ? layers::Transpose(node.In(0), {1, 0, 2}) : node.In(0);
  if (layer.direction == "reverse") x = layers::Flip(x, {0});
  const LayerCall call("rnn", "", std::source_location::current());
  Op op("rnn");
  op.SetInput("Input", {x.name()}).SetInput("WeightList", WeightNames(node, cell, layer));
  std::vector<std::string> before = {StateOf(node, 5, x, layer).name()};
  std::vector<Variable> after = {call.NewOutput()};
  if (cell.has_cell_state) {
    before.push_back(StateOf(node, 6, x, layer).name());
    after.push_back(call.NewOutput());
  }
  std::vector<std::string> after_names;
  for (const Variable& state : after) after_names.push_back(state.name());
  op.SetInput("PreState", before).SetOutput("State", after_names);
  if (node.Has(4)) op.SetInput("SequenceLength", {node.In(4).name()});
  const Variable out = call.NewOutput();
  op.SetOutput("Out", {out.name()}).SetOutput("DropoutState", {call.NewSavedOutput()});
  op.SetOutput("Reserve", {call.NewSavedOutput()});
  op.SetAttr("is_bidirec", layer.directions == 2).SetAttr("hidden_size", layer.hidden);
  op.SetAttr("input_size", x.dims().back()).SetAttr("mode", cell.mode);
  call.Append(std::move(op));
  // [time, batch, directions · hidden] to [time, directions, batch, hidden].
  Variable y = layers::Reshape(out, {0, 0, layer.directions, layer.hidden});
  if (layer.direction == "reverse") y = layers::Flip(y, {0});
  node.Out(0, layers::Transpose(y, layer.batch_first ? Ints{1, 0, 2, 3} : Ints{0, 2, 1, 3}));
  for (size_t i = 0; i < after.size(); ++i) {
    node.Out(i + 1, layer.batch_first ? layers::Transpose(after[i], {1, 0, 2}) : after[i]);
  }
}

void Lstm(const OnnxNode& node) {
  node.CheckInputs(3, 8);
  if (node.Has(7)) node.Unsupported("has peepholes");
  Recur(node, {{0, 2, 3, 1}, "LSTM", {"Sigmoid", "Tanh", "Tanh"}, true});
}

void Gru(const OnnxNode& node) {
  node.CheckInputs(3, 6);
  // Skiff's reset gate multiplies the product with the state, as cuDNN's.
  if (node.Int("linear_before_reset", 0) == 0) node.Unsupported("has linear_before_reset = 0");
  Recur(node, {{1, 0, 2}, "GRU", {"Sigmoid", "Tanh"}});
}

void Rnn(const OnnxNode& node) {
  node.CheckInputs(3, 6);
  const std::vector<std::string> activations = node.StringList("activations");
  const bool is_relu = std::ranges::count(activations, "Relu") > 0;
  Recur(node, {{0}, is_relu ? "RNN_RELU" : "RNN_TANH", {is_relu ? "Relu" : "Tanh"}});
}

}  // namespace

std::vector<OnnxConverterEntry> RecurrentConverters() {
  return {
      {"GRU", Gru},
      {"LSTM", Lstm},
      {"RNN", Rnn},
  };
}

}  // namespace skiff
