// Functions that converters of loops and of recurrent layers share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {

// Returns the last of the states [steps, …] of a recurrence, `initial` if it has no steps. Dim 0 of
// `states` must mean steps: where it isn't known to be above 0, `initial` is put before it.
Variable LastState(const Variable& initial, const Variable& states);

// Returns 0, 1, … before `count`, an int64 [1]. A run plans the ops that follow once it knows the
// count.
Variable NumbersBelow(const Variable& count);

// An LSTM, GRU or RNN of ONNX, whose gates and weights are in ONNX's order.
struct RecurrentLayer {
  int64_t directions = 1;
  bool is_reverse = false;  // of one direction
  int64_t hidden = 0;
  int64_t gates = 1;
  bool batch_first = false;
  bool is_lstm = false;
  std::vector<std::string> activations;  // of each direction

  bool RunsBack(int64_t direction) const { return is_reverse || direction == 1; }
};

// Rows [begin, end) of the weights of a direction.
struct WeightRows {
  int64_t begin = 0;
  int64_t end = 0;
};

// Returns rows of W, R or B (inputs 1 to 3) of a direction, one range after the other. If they are
// constants, or weights that nothing else reads, the rows are made here, and a weight is a
// parameter of its own: its name is the name in the file, then `suffix`, then ".reverse" for
// direction 1. Refuses an input whose dims aren't [directions, gates · hidden, …] of the layer (of
// B, twice as many rows).
Variable RowsOf(const OnnxNode& node, const RecurrentLayer& layer, size_t input, int64_t direction,
                const std::vector<WeightRows>& rows, const std::string& suffix);

// Returns input i, a state of each direction [directions, batch, hidden] for the sequences x [time,
// batch, …]; zeros if it is absent. Throws Error (kInvalidArgument) if the batch comes first and
// the input is of another rank.
Variable FirstState(const OnnxNode& node, const RecurrentLayer& layer, size_t i, const Variable& x);

// The results of a layer for sequences.
struct RecurrentResults {
  Variable out;                // [time, batch, directions · hidden]
  std::vector<Variable> last;  // the states at the end, [directions, batch, hidden]
};

// Appends a layer as a loop over the steps of x [time, batch, width], for layers that the op rnn
// doesn't cover. Refuses the node if it has an activation without an op, or weights that RowsOf
// refuses.
RecurrentResults WrittenOut(const OnnxNode& node, const RecurrentLayer& layer, const Variable& x);

}  // namespace skiff
