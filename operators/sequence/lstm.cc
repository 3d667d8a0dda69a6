// lstm: a long short-term memory over the rows of each sequence, in order or with is_reverse from
// the last row to the first. kernels/lstm_cell.h has the formula of a step. Input has been
// multiplied with the weights of the layer already; Weight multiplies the hidden state.
//
//   Bias             b_c b_i b_f b_o and, with use_peepholes, w_i w_f w_o
//   BatchGate        c~ i f o of each row, in batch order (kernels/time_steps.h)
//   BatchCellPreAct  cell(c) of each row, in batch order
//
// Source: Fluid's lstm (dynamic_lstm). Fluid's lstm_grad ignores the gradient of Cell; this one
// adds it. The gradients of Weight and Bias are sums over all rows in the order of the LoD.
#include "operators/sequence/kernels/lstm_ops.h"

namespace skiff {

void RegisterLstm(OpRegistry& registry) {
  AddLstmOps(registry,
             {.type = "lstm",
              .doc = "A long short-term memory over the rows of each sequence.",
              .gradient_doc = "The gradients of the long short-term memory.",
              .states_doc = "[rows, H], ragged like Input.",
              .initial_doc = "[sequences, H]: the hidden state at the start; 0 if absent.",
              .weight_doc = "[H, 4H]: of the hidden state, for c~, i, f and o.",
              .reads = {ForShape("Input"), "Weight", "Bias", "H0", "C0", "Hidden", "Cell",
                        "BatchGate", "BatchCellPreAct", "Hidden@GRAD", Optional("Cell@GRAD")},
              .writes = {"Input@GRAD", "Weight@GRAD", "Bias@GRAD", "H0@GRAD", "C0@GRAD"}});
}

}  // namespace skiff
