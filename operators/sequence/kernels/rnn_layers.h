// The layers of rnn: where the weights, gates and states of each are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/base/static_text.h"
#include "framework/op/op_context.h"
#include "operators/common/dropout_settings.h"
#include "operators/sequence/kernels/lstm_cell.h"
#include "operators/sequence/kernels/recurrent_activation.h"

namespace skiff {

enum class RnnMode { kLstm, kGru, kSimple };

// The order of the gates in weights and biases of an LSTM.
inline constexpr LstmGateOrder kRnnLstmOrder = {
    .candidate = 2, .input = 0, .forget = 1, .output = 3};

// Rows of a matrix of weights, and the columns of a row of gates to which their products go.
struct RnnGatePart {
  int64_t row = 0;
  int64_t column = 0;
  int64_t count = 0;
};

// The attributes of rnn, and values that follow from them. "A pass" is one direction of a layer;
// they are numbered as in PreState: the backward pass of a layer after its forward pass.
struct RnnSettings {
  RnnMode mode = RnnMode::kSimple;
  RecurrentActivation activation = RecurrentActivation::kTanh;  // kSimple
  int64_t layers = 1;
  int64_t directions = 1;
  int64_t size = 0;  // H

  int64_t passes() const { return layers * directions; }
  size_t states() const { return mode == RnnMode::kLstm ? 2 : 1; }
  // The columns of the hidden states of a layer.
  int64_t hidden_width() const { return directions * size; }
  // The rows of the matrices of weights.
  int64_t weight_rows() const;
  // The columns of a row of gates while the op computes them (kernels/rnn_cell.h).
  int64_t gates_width() const;
  // The parts of the weights of the input. The weights of the hidden state are one part at column
  // 0.
  std::vector<RnnGatePart> input_parts() const;

  // Indices in WeightList.
  size_t weight(int64_t pass) const { return static_cast<size_t>(2 * pass); }
  size_t hidden_weight(int64_t pass) const { return weight(pass) + 1; }
  size_t bias(int64_t pass) const { return static_cast<size_t>(2 * (passes() + pass)); }
  size_t hidden_bias(int64_t pass) const { return bias(pass) + 1; }
};

RnnSettings RnnSettingsOf(const OpContext& context);

// What Reserve has of each row in batch order: for each layer and pass, the gates and, of an LSTM,
// cell and activated cell; then, unless it is the last layer, the hidden states of all its passes.
class RnnReserve {
 public:
  explicit RnnReserve(const RnnSettings& settings) : settings_(settings) {}

  // The numbers of each row.
  int64_t width() const {
    return SavedWidth() * settings_.passes() + HiddenBefore(settings_.layers - 1);
  }
  // Return where a part begins: the numbers of a row that come before it. All rows of a part follow
  // each other.
  int64_t Gates(int64_t pass) const {
    return pass * SavedWidth() + HiddenBefore(pass / settings_.directions);
  }
  int64_t Cell(int64_t pass) const { return Gates(pass) + settings_.gates_width(); }
  int64_t ActivatedCell(int64_t pass) const { return Cell(pass) + settings_.size; }
  int64_t Hidden(int64_t layer) const {
    return (layer + 1) * settings_.directions * SavedWidth() + HiddenBefore(layer);
  }

 private:
  // Of a pass. A simple cell needs only its hidden state.
  int64_t SavedWidth() const;
  int64_t HiddenBefore(int64_t layer) const { return layer * settings_.hidden_width(); }

  RnnSettings settings_;
};

// Throws Error (kInvalidArgument) unless a slot that has `count` tensors has one for each state:
// the hidden states and, of an LSTM, the cells.
void CheckStateCount(const OpContext& context, StaticText slot, size_t count);
// Checks the inputs of rnn. Throws Error (kInvalidArgument) for a wrong one.
void CheckRnnArguments(const OpContext& context);

// The elements dropped between the layers.
DropoutSettings RnnDropoutOf(const OpContext& context);
// Returns the elements of DropoutState for each row of Input, in a test as in a training.
int64_t RnnDropoutWidth(const OpContext& context);

}  // namespace skiff
