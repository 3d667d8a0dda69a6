// Recurrent layers over padded sequences, and single steps of them.
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/recurrent_cells.h"

namespace skiff::onnx_export {
namespace {

// How ONNX has the cell of a mode.
struct CellForm {
  std::string type;
  // The gates of ONNX's weights: which of Skiff's each one is.
  std::vector<size_t> gates;
  std::string activation;  // of RNN
};

CellForm FormOf(const std::string& mode) {
  if (mode == "LSTM") return {"LSTM", {0, 3, 1, 2}, ""};  // i f c o -> i o f c
  if (mode == "GRU") return {"GRU", {1, 0, 2}, ""};       // r z c -> z r c
  if (mode == "RNN_RELU") return {"RNN", {0}, "Relu"};
  if (mode == "RNN_TANH") return {"RNN", {0}, "Tanh"};
  Refuse("mode = \"", mode, "\"");
}

// Reorders the gates of a weight or bias, dim 0.
std::string Reordered(OpExport& op, const std::string& value, const CellForm& form,
                      int64_t hidden) {
  if (form.gates.size() == 1) return value;
  const std::vector<std::string> parts = EqualParts(op, value, 0, form.gates.size(), hidden);
  std::vector<std::string> ordered;
  for (const size_t gate : form.gates) ordered.push_back(parts[gate]);
  return Joined(op, ordered);
}

struct RnnShape {
  int64_t layers = 1;
  int64_t directions = 1;
  int64_t hidden = 0;
};

// Returns the weights of a layer: those of each direction one after the other, [directions, …].
// `kind` is 0 for the weights of the input and 1 for those of the hidden state.
std::string LayerWeights(OpExport& op, const CellForm& form, const RnnShape& shape, int64_t layer,
                         int64_t kind) {
  std::vector<std::string> parts;
  for (int64_t direction = 0; direction < shape.directions; ++direction) {
    const auto at = static_cast<size_t>(2 * (layer * shape.directions + direction) + kind);
    const std::string weight = Reordered(op, op.In("WeightList", at), form, shape.hidden);
    parts.push_back(Unsqueezed(op, weight, {0}));
  }
  return Joined(op, parts);
}

std::string LayerBiases(OpExport& op, const CellForm& form, const RnnShape& shape, int64_t layer) {
  const int64_t first = 2 * shape.layers * shape.directions;
  std::vector<std::string> parts;
  for (int64_t direction = 0; direction < shape.directions; ++direction) {
    std::vector<std::string> both;
    for (int64_t kind = 0; kind < 2; ++kind) {
      const auto at =
          static_cast<size_t>(first + 2 * (layer * shape.directions + direction) + kind);
      both.push_back(Reordered(op, op.In("WeightList", at), form, shape.hidden));
    }
    parts.push_back(Unsqueezed(op, Joined(op, both), {0}));
  }
  return Joined(op, parts);
}

// Returns the rows of a layer of a state [layers · directions, N, H].
std::string StateOf(OpExport& op, const std::string& states, const RnnShape& shape, int64_t layer) {
  if (shape.layers == 1) return states;
  const int64_t begin = layer * shape.directions;
  return op.Node("Slice", {states, op.IntVector({begin}), op.IntVector({begin + shape.directions}),
                           op.IntVector({0})});
}

NodeAttrs CellAttrs(const CellForm& form, const RnnShape& shape) {
  NodeAttrs attrs = {
      {"hidden_size", shape.hidden},
      {"direction", std::string(shape.directions == 2 ? "bidirectional" : "forward")}};
  if (form.type == "GRU") attrs.push_back({"linear_before_reset", int64_t{1}});
  if (form.type == "RNN") {
    const auto count = static_cast<size_t>(shape.directions);
    attrs.push_back({"activations", std::vector<std::string>(count, form.activation)});
  }
  return attrs;
}

void Rnn(OpExport& op) {
  if (op.Float("dropout_prob") != 0 && !op.Bool("is_test")) Refuse("it draws random numbers");
  op.Ignore("seed");
  op.Ignore("input_size");
  const CellForm form = FormOf(op.Text("mode"));
  const RnnShape shape = {.layers = op.Int("num_layers"),
                          .directions = op.Bool("is_bidirec") ? 2 : 1,
                          .hidden = op.Int("hidden_size")};
  const bool is_lstm = form.type == "LSTM";
  std::string rows = op.In("Input");
  const std::string lengths =
      op.Has("SequenceLength") ? op.Cast(op.In("SequenceLength"), DType::kInt32) : "";
  const std::vector<std::string> states = op.Ins("PreState");
  std::vector<std::vector<std::string>> last(states.size());
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    std::vector<std::string> inputs = {rows, LayerWeights(op, form, shape, layer, 0),
                                       LayerWeights(op, form, shape, layer, 1),
                                       LayerBiases(op, form, shape, layer), lengths};
    for (const std::string& state : states) inputs.push_back(StateOf(op, state, shape, layer));
    const std::vector<std::string> made =
        op.Nodes(form.type, inputs, CellAttrs(form, shape), is_lstm ? 3 : 2);
    // [time, directions, N, H] -> [time, N, directions · H]
    rows = shape.directions == 1 ? Squeezed(op, made[0], {1})
                                 : Reshaped(op, Transposed(op, made[0], {0, 2, 1, 3}), {0, 0, -1});
    for (size_t i = 0; i < last.size(); ++i) last[i].push_back(made[i + 1]);
  }
  op.Set("Out", rows);
  for (size_t i = 0; i < last.size(); ++i) {
    std::string state = Joined(op, last[i]);
    if (!lengths.empty()) {
      // Runtimes disagree about the states of a sequence without rows, which stay in Skiff.
      const std::string is_empty = op.Node("Equal", {lengths, op.Number(DType::kInt32, 0)});
      state = op.Node("Where", {Unsqueezed(op, is_empty, {0, 2}), states[i], state});
    }
    op.Set("State", state, i);
  }
}

void LstmUnit(OpExport& op) {
  const int64_t width = op.ShapeOf("C_prev")[1];
  if (width <= 0) Refuse("the number of cells is unknown");
  const LstmStates states =
      LstmStep(op, op.In("X"), op.In("C_prev"), op.Float("forget_bias"), op.DTypeOf("X"), width);
  op.Set("C", states.cell);
  op.Set("H", states.hidden);
}

// The node of one of Fluid's numbers of activations.
std::string Activation(int64_t number) {
  const char* types[] = {"Identity", "Sigmoid", "Tanh", "Relu"};
  if (number < 0 || number > 3) Refuse("an activation of number ", number);
  return types[number];
}

void GruUnit(OpExport& op) {
  const int64_t width = op.ShapeOf("HiddenPrev")[1];
  if (width <= 0) Refuse("the number of units is unknown");
  const GruForm form = {.gate = Activation(op.Int("gate_activation")),
                        .candidate = Activation(op.Int("activation")),
                        .origin_mode = op.Bool("origin_mode")};
  const GruWeights weights = GruWeightsOf(op, op.In("Weight"), width);
  std::string input = op.In("Input");
  if (op.Has("Bias")) input = op.Node("Add", {input, op.In("Bias")});
  const GruStates states = GruStep(op, input, op.In("HiddenPrev"), weights, form, width);
  op.Set("Hidden", states.hidden);
  op.Set("ResetHiddenPrev", states.reset);
  op.Set("Gate", Joined(op, {states.gates, states.candidate}, 1));
}

}  // namespace

void AddRecurrentExporters(ExporterTable* table) {
  table->Add("rnn", Rnn);
  table->Add("lstm_unit", LstmUnit);
  table->Add("gru_unit", GruUnit);
}

}  // namespace skiff::onnx_export
