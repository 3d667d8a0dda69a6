// Recurrent layers and attention over ragged sequences.
#include <optional>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/ragged_rows.h"
#include "framework/onnx/recurrent_cells.h"

namespace skiff::onnx_export {
namespace {

// ONNX's name of an activation.
std::string Activation(OpExport& op, std::string_view attribute) {
  const std::string& name = op.Text(attribute);
  if (name == "sigmoid") return "Sigmoid";
  if (name == "tanh") return "Tanh";
  if (name == "relu") return "Relu";
  Refuse(attribute, " = \"", name, "\"");
}

// Returns columns of `hidden` each, in another order.
std::string OrderedColumns(OpExport& op, const std::string& value, int64_t hidden,
                           const std::vector<size_t>& order) {
  const std::vector<std::string> parts = EqualParts(op, value, 1, order.size(), hidden);
  std::vector<std::string> ordered;
  for (const size_t i : order) ordered.push_back(parts[i]);
  return Joined(op, ordered, 1);
}

// What a layer reads, and the weights that it multiplies this with.
struct LayerInput {
  std::string x;       // [rows, D]
  std::string weight;  // [D, gates]
};

// Input has been multiplied with the weights of the layer. ONNX's layers do that themselves, so
// they read the factors. Of something else, the weights are 1.
LayerInput InputOf(OpExport& op, int64_t gates) {
  const std::string input = op.In("Input");
  const std::optional<Producer> product = op.graph().ProducerOf(input);
  if (product && product->type == "MatMul") return {product->inputs[0], product->inputs[1]};
  const std::string zeros =
      op.Node("ConstantOfShape", {op.IntVector({gates, gates})},
              {{"value", Tensor::FromValues(Shape{1}, std::vector<float>{0.0f})}});
  return {input, op.Node("EyeLike", {zeros}, {{"dtype", OnnxDType(op.DTypeOf("Input"))}})};
}

// Returns [1, gates, D] of weights [D, gates].
std::string LayerWeight(OpExport& op, const std::string& weight) {
  return Unsqueezed(op, Transposed(op, weight, {1, 0}), {0});
}

NodeAttrs LayerAttrs(OpExport& op, int64_t hidden, const std::vector<std::string>& activations) {
  return {{"hidden_size", hidden},
          {"direction", std::string(op.Bool("is_reverse") ? "reverse" : "forward")},
          {"activations", activations}};
}

// Returns [1, sequences, H] of a state; empty if it is absent.
std::string StateBefore(OpExport& op, std::string_view slot) {
  return op.Has(slot) ? Unsqueezed(op, op.In(slot), {0}) : std::string();
}

std::string SequenceLengths(OpExport& op) {
  return op.Cast(LengthsOf(op, op.Offsets("Input")), DType::kInt32);
}

int64_t HiddenSize(OpExport& op) {
  const int64_t hidden = op.ShapeOf("Weight")[0];
  if (hidden <= 0) Refuse("the number of units is unknown");
  return hidden;
}

// Returns [1, 2 · gates]: the bias of the input, and that of the state, which is 0.
std::string BothBiases(OpExport& op, const std::string& bias) {
  const std::string none = op.Node("Mul", {bias, op.Number(op.DTypeOf("Input"), 0)});
  return Joined(op, {bias, none}, 1);
}

// Adds a layer, whose last inputs may be absent, and sets the states.
void SetLayer(OpExport& op, const std::string& type, std::vector<std::string> inputs,
              const NodeAttrs& attrs) {
  while (inputs.back().empty()) inputs.pop_back();
  const std::string states = Squeezed(op, op.Node(type, inputs, attrs), {1});
  op.Set("Hidden", UnpaddedSteps(op, states, op.Offsets("Input")));
}

struct LstmBias {
  std::string gates;
  std::string peepholes;  // empty if there are none
};

LstmBias LstmBiasOf(OpExport& op, int64_t hidden) {
  const std::string bias = op.In("Bias");
  if (!op.Bool("use_peepholes")) return {.gates = bias, .peepholes = {}};
  const std::vector<std::string> parts =
      op.Nodes("Split", {bias, op.IntVector({4 * hidden, 3 * hidden})}, {{"axis", int64_t{1}}}, 2);
  return {.gates = parts[0],
          .peepholes = OrderedColumns(op, parts[1], hidden, {0, 2, 1})};  // i f o -> i o f
}

void Lstm(OpExport& op) {
  const int64_t hidden = HiddenSize(op);
  const std::vector<std::string> activations = {Activation(op, "gate_activation"),
                                                Activation(op, "candidate_activation"),
                                                Activation(op, "cell_activation")};
  const LayerInput input = InputOf(op, 4 * hidden);
  const LstmBias bias = LstmBiasOf(op, hidden);
  const auto ordered = [&](const std::string& value) {
    return OrderedColumns(op, value, hidden, {1, 3, 2, 0});  // c~ i f o -> i o f c
  };
  SetLayer(op, "LSTM",
           {PaddedSteps(op, input.x, op.Offsets("Input")), LayerWeight(op, ordered(input.weight)),
            LayerWeight(op, ordered(op.In("Weight"))), BothBiases(op, ordered(bias.gates)),
            SequenceLengths(op), StateBefore(op, "H0"), StateBefore(op, "C0"), bias.peepholes},
           LayerAttrs(op, hidden, activations));
}

void Gru(OpExport& op) {
  const int64_t hidden = HiddenSize(op);
  const std::string gate = Activation(op, "gate_activation");
  const std::string candidate = Activation(op, "activation");
  // ONNX's z is the share of the old state: u in origin_mode, else 1 - u, and
  // 1 - sigmoid(x) = sigmoid(-x).
  const bool negates = !op.Bool("origin_mode");
  if (negates && gate != "Sigmoid") {
    Refuse("gate_activation isn't sigmoid, and origin_mode = false");
  }
  const auto joined = [&](const std::vector<std::string>& parts) {
    return Joined(op, {negates ? op.Node("Neg", {parts[0]}) : parts[0], parts[1], parts[2]}, 1);
  };
  const auto gates = [&](const std::string& value) {
    return joined(EqualParts(op, value, 1, 3, hidden));
  };
  const LayerInput input = InputOf(op, 3 * hidden);
  const GruWeights weights = GruWeightsOf(op, op.In("Weight"), hidden);
  std::vector<std::string> of_state = EqualParts(op, weights.gates, 1, 2, hidden);
  of_state.push_back(weights.candidate);
  const std::string bias = op.Has("Bias") ? BothBiases(op, gates(op.In("Bias"))) : std::string();
  SetLayer(op, "GRU",
           {PaddedSteps(op, input.x, op.Offsets("Input")), LayerWeight(op, gates(input.weight)),
            LayerWeight(op, joined(of_state)), bias, SequenceLengths(op), StateBefore(op, "H0")},
           LayerAttrs(op, hidden, {gate, candidate}));
}

// What queries see, padded.
struct Tokens {
  std::string encoded;       // [sequences, tokens, E]
  std::string keys;          // [sequences, tokens, A]
  std::string is_token;      // [sequences, tokens]
  std::string score_weight;  // [A, 1] of additive scores, else empty
};

Tokens TokensOf(OpExport& op) {
  const std::string offsets = op.Offsets("Encoded");
  const bool is_additive = op.Text("score") == "additive";
  return {.encoded = Padded(op, op.In("Encoded"), offsets),
          .keys = Padded(op, op.In("Keys"), offsets),
          .is_token = PaddedRowsOf(op, offsets).is_row,
          .score_weight = is_additive ? op.In("ScoreWeight") : std::string()};
}

struct Attended {
  std::string context;  // [sequences, E]
  std::string weights;  // [sequences, tokens]
};

// Looks at the tokens of each sequence, for queries [sequences, A].
Attended Attend(OpExport& op, const std::string& query, const Tokens& tokens) {
  const DType dtype = op.DTypeOf("Encoded");
  std::string scores;
  if (tokens.score_weight.empty()) {
    scores = op.Node("MatMul", {tokens.keys, Unsqueezed(op, query, {2})});
  } else {
    const std::string sums = op.Node("Add", {Unsqueezed(op, query, {1}), tokens.keys});
    scores = op.Node("MatMul", {op.Node("Tanh", {sums}), tokens.score_weight});
  }
  const std::string known = MaskedScores(op, tokens.is_token, Squeezed(op, scores, {2}), dtype);
  const std::string shares = op.Node("Softmax", {known}, {{"axis", int64_t{1}}});
  // A sequence without tokens has no share.
  const std::string weights = op.Node("Where", {tokens.is_token, shares, op.Number(dtype, 0)});
  const std::string context = op.Node("MatMul", {Unsqueezed(op, weights, {1}), tokens.encoded});
  return {.context = Squeezed(op, context, {1}), .weights = weights};
}

void SequenceAttention(OpExport& op) {
  const std::string offsets = op.Offsets("Encoded");
  const Attended attended = Attend(op, op.In("Query"), TokensOf(op));
  op.Set("Context", attended.context);
  op.Set("AttentionWeights", Unsqueezed(op, Unpadded(op, attended.weights, offsets), {1}));
  op.SetLoD("AttentionWeights", op.LoD("Encoded"));
}

// What a step of attention_decoder computes with.
struct DecoderParts {
  int64_t hidden = 0;
  bool is_lstm = false;
  bool attends_before = false;
  float forget_bias = 0;
  Tokens tokens;
  std::string weight;
  GruWeights gru_weights;
  std::string context_weight;  // with attends_before
  std::string query_weight;    // may be absent
  std::string query_bias;      // may be absent
};

DecoderParts PartsOf(OpExport& op) {
  DecoderParts parts = {.hidden = HiddenSize(op),
                        .is_lstm = op.Text("cell") == "lstm",
                        .attends_before = op.Text("attends") == "before",
                        .forget_bias = op.Float("forget_bias"),
                        .tokens = TokensOf(op),
                        .weight = op.In("Weight"),
                        .gru_weights = {},
                        .context_weight = {},
                        .query_weight = {},
                        .query_bias = {}};
  if (!parts.is_lstm) parts.gru_weights = GruWeightsOf(op, parts.weight, parts.hidden);
  if (parts.attends_before) parts.context_weight = op.In("ContextWeight");
  if (op.Has("QueryWeight")) parts.query_weight = op.In("QueryWeight");
  if (op.Has("QueryBias")) parts.query_bias = op.In("QueryBias");
  return parts;
}

Attended AttendFor(OpExport& op, const DecoderParts& parts, const std::string& state) {
  std::string query = state;
  if (!parts.query_weight.empty()) query = op.Node("MatMul", {query, parts.query_weight});
  if (!parts.query_bias.empty()) query = op.Node("Add", {query, parts.query_bias});
  return Attend(op, query, parts.tokens);
}

LstmStates CellStep(OpExport& op, const DecoderParts& parts, const std::string& input,
                    const LstmStates& before) {
  if (!parts.is_lstm) {
    const GruStates states = GruStep(op, input, before.hidden, parts.gru_weights, {}, parts.hidden);
    return {.hidden = states.hidden, .cell = {}};
  }
  const std::string product = op.Node("MatMul", {before.hidden, parts.weight});
  return LstmStep(op, op.Node("Add", {input, product}), before.cell, parts.forget_bias,
                  op.DTypeOf("Input"), parts.hidden);
}

GraphType Matrix(DType dtype, int64_t columns) {
  return {.dtype = dtype, .dims = {{GraphDim{}, GraphDim{.size = columns}}}};
}

// Returns the body of a Scan over the steps: states and a step's part of Input come in; states go
// out, then what a step makes: hidden, context, weights, and the cell of an lstm.
Subgraph DecoderBody(OpExport& op, const DecoderParts& parts) {
  GraphWriter& graph = op.graph();
  const DType dtype = op.DTypeOf("Input");
  const GraphType state_type = Matrix(dtype, parts.hidden);
  const auto add_input = [&](const char* name, const GraphType& type) {
    const std::string input = graph.FreshName(name);
    graph.AddInput(input, type);
    return input;
  };
  graph.BeginSubgraph();
  LstmStates before = {.hidden = add_input("hidden", state_type), .cell = {}};
  if (parts.is_lstm) before.cell = add_input("cell", state_type);
  std::string input = add_input("step", Matrix(dtype, op.ShapeOf("Input")[1]));
  Attended attended;
  if (parts.attends_before) {
    attended = AttendFor(op, parts, before.hidden);
    const std::string product = op.Node("MatMul", {attended.context, parts.context_weight});
    input = op.Node("Add", {input, product});
  }
  const LstmStates after = CellStep(op, parts, input, before);
  if (!parts.attends_before) attended = AttendFor(op, parts, after.hidden);
  std::vector<std::string> outputs = {after.hidden};
  if (parts.is_lstm) outputs.push_back(after.cell);
  outputs.insert(outputs.end(), {after.hidden, attended.context, attended.weights});
  if (parts.is_lstm) outputs.push_back(after.cell);
  for (const std::string& output : outputs) graph.AddOutput(output, Matrix(dtype, -1));
  return graph.EndSubgraph();
}

// The weights of each pair of a row and a token of its sentence.
void SetAttentionWeights(OpExport& op, const std::string& weights, const Tokens& tokens) {
  const std::string targets = op.Offsets("Input");
  const std::string is_token = RowsAt(op, tokens.is_token, PlacesOf(op, targets).sequence);
  const std::string rows = UnpaddedSteps(op, weights, targets);
  op.Set("AttentionWeights",
         op.Node("Compress", {Reshaped(op, rows, {-1}), Reshaped(op, is_token, {-1})}));
  const std::string sources = LengthsOf(op, op.Offsets("Encoded"));
  op.SetLoD("AttentionWeights", {OffsetsOf(op, op.Node("Mul", {LengthsOf(op, targets), sources}))});
}

void AttentionDecoder(OpExport& op) {
  const std::string offsets = op.Offsets("Input");
  const DecoderParts parts = PartsOf(op);
  std::string input = op.In("Input");
  if (op.Has("Bias")) input = op.Node("Add", {input, op.In("Bias")});
  const std::string sequences = op.Node("Shape", {LengthsOf(op, offsets)});
  const std::string zeros = op.Node(
      "Expand",
      {op.Number(op.DTypeOf("Input"), 0), Joined(op, {sequences, op.IntVector({parts.hidden})})});
  const auto first = [&](const char* slot) { return op.Has(slot) ? op.In(slot) : zeros; };
  std::vector<std::string> inputs = {first("H0")};
  if (parts.is_lstm) inputs.push_back(first("C0"));
  const size_t states = inputs.size();
  inputs.push_back(PaddedSteps(op, input, offsets));
  const NodeAttrs attrs = {{"body", DecoderBody(op, parts)}, {"num_scan_inputs", int64_t{1}}};
  const std::vector<std::string> made = op.Nodes("Scan", inputs, attrs, 2 * states + 2);
  op.Set("Hidden", UnpaddedSteps(op, made[states], offsets));
  op.Set("Context", UnpaddedSteps(op, made[states + 1], offsets));
  SetAttentionWeights(op, made[states + 2], parts.tokens);
  if (parts.is_lstm) op.Set("Cell", UnpaddedSteps(op, made[states + 3], offsets));
}

}  // namespace

void AddRaggedRecurrentExporters(ExporterTable* table) {
  table->Add("lstm", Lstm);
  table->Add("gru", Gru);
  table->Add("sequence_attention", SequenceAttention);
  table->Add("attention_decoder", AttentionDecoder);
}

}  // namespace skiff::onnx_export
