// Recurrent layers, by the op rnn if it has them, else written out as loops.
#include <algorithm>
#include <utility>

#include "framework/builder/tensor_layers.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/recurrence.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// A kind of layer as the op rnn has it: where its gates are among those of ONNX.
struct RnnForm {
  Ints order;
  std::string mode;
  std::vector<std::string> activations;
};

RecurrentLayer LayerOf(const OnnxNode& node, const RnnForm& form) {
  RecurrentLayer layer;
  const std::string direction = node.String("direction", "forward");
  if (direction == "bidirectional") {
    layer.directions = 2;
  } else if (direction == "reverse") {
    layer.is_reverse = true;
  } else if (direction != "forward") {
    node.Invalid("direction = \"", direction, "\"");
  }
  layer.hidden = node.Int("hidden_size", 0);
  if (layer.hidden < 1 || layer.hidden > kMostConstant) {
    node.Invalid("hidden_size = ", layer.hidden);
  }
  layer.gates = static_cast<int64_t>(form.order.size());
  layer.is_lstm = layer.gates == 4;
  layer.batch_first = node.Int("layout", 0) != 0;
  layer.activations = node.StringList("activations");
  const size_t expected = form.activations.size() * static_cast<size_t>(layer.directions);
  if (layer.activations.empty()) {
    for (int64_t i = 0; i < layer.directions; ++i) {
      layer.activations.insert(layer.activations.end(), form.activations.begin(),
                               form.activations.end());
    }
  }
  if (layer.activations.size() != expected) {
    node.Invalid("has ", layer.activations.size(), " activations, expected ", expected);
  }
  return layer;
}

// Whether the op rnn has the layer.
bool IsPlain(const OnnxNode& node, const RnnForm& form, const RecurrentLayer& layer) {
  for (size_t i = 0; i < layer.activations.size(); ++i) {
    if (layer.activations[i] != form.activations[i % form.activations.size()]) return false;
  }
  // Its reset gate multiplies the product with the state, as cuDNN's.
  if (layer.gates == 3 && node.Int("linear_before_reset", 0) == 0) return false;
  return !node.HasAttr("clip") && node.Int("input_forget", 0) == 0 && !node.Has(7) &&
         !(layer.is_reverse && node.Has(4));
}

std::vector<std::string> WeightNames(const OnnxNode& node, const RnnForm& form,
                                     const RecurrentLayer& layer) {
  const int64_t width = layer.gates * layer.hidden;
  std::vector<std::string> names;
  std::vector<std::string> biases;
  for (int64_t direction = 0; direction < layer.directions; ++direction) {
    for (const size_t input : {size_t{1}, size_t{2}}) {
      const auto gates_from = [&](int64_t from) {
        std::vector<WeightRows> rows;
        for (const int64_t gate : form.order) {
          const int64_t begin = from + gate * layer.hidden;
          rows.push_back({.begin = begin, .end = begin + layer.hidden});
        }
        return rows;
      };
      const Variable weight = RowsOf(node, layer, input, direction, gates_from(0), "");
      names.push_back(weight.name());
      const Variable bias =
          node.Has(3) ? RowsOf(node, layer, 3, direction, gates_from(input == 1 ? 0 : width),
                               input == 1 ? ".input" : ".hidden")
                      : layers::FillConstant({width}, weight.dtype(), 0.0);
      biases.push_back(bias.name());
    }
  }
  names.insert(names.end(), biases.begin(), biases.end());
  return names;
}

RecurrentResults ByRnn(const OnnxNode& node, const RnnForm& form, const RecurrentLayer& layer,
                       const Variable& input) {
  const Variable x = layer.is_reverse ? layers::Flip(input, {0}) : input;
  const LayerCall call("rnn", "", std::source_location::current());
  Op op("rnn");
  op.SetInput("Input", {x.name()}).SetInput("WeightList", WeightNames(node, form, layer));
  RecurrentResults results;
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const size_t state : {size_t{5}, size_t{6}}) {
    if (state == 6 && !layer.is_lstm) continue;
    before.push_back(FirstState(node, layer, state, x).name());
    results.last.push_back(call.NewOutput());
    after.push_back(results.last.back().name());
  }
  op.SetInput("PreState", before).SetOutput("State", after);
  if (node.Has(4)) op.SetInput("SequenceLength", {node.In(4).name()});
  results.out = call.NewOutput();
  op.SetOutput("Out", {results.out.name()}).SetOutput("DropoutState", {call.NewSavedOutput()});
  op.SetOutput("Reserve", {call.NewSavedOutput()});
  op.SetAttr("is_bidirec", layer.directions == 2).SetAttr("hidden_size", layer.hidden);
  op.SetAttr("input_size", x.dims().back()).SetAttr("mode", form.mode);
  call.Append(std::move(op));
  if (layer.is_reverse) results.out = layers::Flip(results.out, {0});
  return results;
}

void Recur(const OnnxNode& node, const RnnForm& form) {
  const RecurrentLayer layer = LayerOf(node, form);
  const Variable x = layer.batch_first ? layers::Transpose(node.In(0), {1, 0, 2}) : node.In(0);
  if (x.dims().size() != 3)
    node.Invalid("input 0 is of shape ", Shape(x.dims()), ", expected 3 dims");
  const RecurrentResults results =
      IsPlain(node, form, layer) ? ByRnn(node, form, layer, x) : WrittenOut(node, layer, x);
  // [time, batch, directions · hidden] to [time, directions, batch, hidden].
  const Variable y = layers::Reshape(results.out, {0, 0, layer.directions, layer.hidden});
  node.Out(0, layers::Transpose(y, layer.batch_first ? Ints{1, 0, 2, 3} : Ints{0, 2, 1, 3}));
  for (size_t i = 0; i < results.last.size(); ++i) {
    const Variable& last = results.last[i];
    node.Out(i + 1, layer.batch_first ? layers::Transpose(last, {1, 0, 2}) : last);
  }
}

void Lstm(const OnnxNode& node) {
  node.CheckInputs(3, 8);
  // Whether it bounds what the last activation reads, runtimes and ONNX's text see differently.
  if (node.HasAttr("clip")) node.Unsupported("has a clip");
  Recur(node, {{0, 2, 3, 1}, "LSTM", {"Sigmoid", "Tanh", "Tanh"}});
}

void Gru(const OnnxNode& node) {
  node.CheckInputs(3, 6);
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
