#include "framework/onnx/recurrent_cells.h"

#include "framework/onnx/compositions.h"

namespace skiff::onnx_export {

std::vector<std::string> EqualParts(OpExport& op, const std::string& value, int64_t axis,
                                    size_t parts, int64_t width) {
  const std::vector<int64_t> extents(parts, width);
  return op.Nodes("Split", {value, op.IntVector(extents)}, {{"axis", axis}}, parts);
}

LstmStates LstmStep(OpExport& op, const std::string& gates, const std::string& cell_before,
                    float forget_bias, DType dtype, int64_t width) {
  const std::vector<std::string> parts = EqualParts(op, gates, 1, 4, width);
  const std::string bias = op.Number(dtype, static_cast<double>(forget_bias));
  const std::string input = op.Node("Sigmoid", {parts[0]});
  const std::string forget = op.Node("Sigmoid", {op.Node("Add", {parts[1], bias})});
  const std::string output = op.Node("Sigmoid", {parts[2]});
  const std::string kept = op.Node("Mul", {forget, cell_before});
  const std::string added = op.Node("Mul", {input, op.Node("Tanh", {parts[3]})});
  const std::string cell = op.Node("Add", {kept, added});
  return {.hidden = op.Node("Mul", {output, op.Node("Tanh", {cell})}), .cell = cell};
}

GruWeights GruWeightsOf(OpExport& op, const std::string& weight, int64_t width) {
  const std::string flat = Reshaped(op, weight, {-1});
  const std::vector<std::string> parts = op.Nodes(
      "Split", {flat, op.IntVector({2 * width * width, width * width})}, {{"axis", int64_t{0}}}, 2);
  return {.gates = Reshaped(op, parts[0], {width, 2 * width}),
          .candidate = Reshaped(op, parts[1], {width, width})};
}

GruStates GruStep(OpExport& op, const std::string& input, const std::string& before,
                  const GruWeights& weights, const GruForm& form, int64_t width) {
  const std::vector<std::string> parts =
      op.Nodes("Split", {input, op.IntVector({2 * width, width})}, {{"axis", int64_t{1}}}, 2);
  const std::string products = op.Node("MatMul", {before, weights.gates});
  const std::string gates = op.Node(form.gate, {op.Node("Add", {parts[0], products})});
  const std::vector<std::string> both = EqualParts(op, gates, 1, 2, width);
  const std::string reset = op.Node("Mul", {both[1], before});
  const std::string product = op.Node("MatMul", {reset, weights.candidate});
  const std::string candidate = op.Node(form.candidate, {op.Node("Add", {parts[1], product})});
  // u is the share of the candidate, or of the old state in origin_mode.
  const std::string& from = form.origin_mode ? candidate : before;
  const std::string& to = form.origin_mode ? before : candidate;
  const std::string moved = op.Node("Mul", {both[0], op.Node("Sub", {to, from})});
  return {.hidden = op.Node("Add", {from, moved}),
          .reset = reset,
          .gates = gates,
          .candidate = candidate};
}

}  // namespace skiff::onnx_export
