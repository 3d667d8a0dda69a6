// One time step of recurrent cells, as compositions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/onnx/op_export.h"

namespace skiff::onnx_export {

// Returns parts of `width` of a value along an axis.
std::vector<std::string> EqualParts(OpExport& op, const std::string& value, int64_t axis,
                                    size_t parts, int64_t width);

struct LstmStates {
  std::string hidden;
  std::string cell;
};
// The step of lstm_unit: `gates` are i, f, o and the candidate, [rows, 4H].
LstmStates LstmStep(OpExport& op, const std::string& gates, const std::string& cell_before,
                    float forget_bias, DType dtype, int64_t width);

struct GruWeights {
  std::string gates;      // [H, 2H], of u and r
  std::string candidate;  // [H, H]
};
// Returns the two matrices, which Weight has one after the other, whatever its dims say.
GruWeights GruWeightsOf(OpExport& op, const std::string& weight, int64_t width);

struct GruForm {
  std::string gate = "Sigmoid";  // activations, as types of nodes
  std::string candidate = "Tanh";
  bool origin_mode = false;
};
struct GruStates {
  std::string hidden;
  std::string reset;      // r times the state before
  std::string gates;      // u and r, [rows, 2H]
  std::string candidate;  // [rows, H]
};
// The step of gru_unit. `input` is for u, r and the candidate, [rows, 3H], with the bias.
GruStates GruStep(OpExport& op, const std::string& input, const std::string& before,
                  const GruWeights& weights, const GruForm& form, int64_t width);

}  // namespace skiff::onnx_export
