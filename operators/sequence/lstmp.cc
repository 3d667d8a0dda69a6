// lstmp: a long short-term memory with a recurrent projection over the rows of each sequence, in
// order or with is_reverse from the last row to the first. kernels/lstm_cell.h has the formula of a
// step, in which h' · Weight becomes r' · Weight: r', at first H0, is the projection of the step
// before,
//
//   r = proj_activation(h · ProjWeight), at most proj_clip from 0
//
// Input has been multiplied with the weights of the layer already. What is in batch order:
// kernels/time_steps.h.
//
// Source: Fluid's lstmp (dynamic_lstmp; Sak et al. 2014). Fluid 1.x projects with cell_activation
// whatever proj_activation says, and its gradients don't stop at cell_clip. The gradients of
// weights and bias are sums over all rows in batch order.
#include "operators/sequence/kernels/lstm_ops.h"

namespace skiff {

void RegisterLstmp(OpRegistry& registry) {
  AddLstmOps(
      registry,
      {.type = "lstmp",
       .doc =
           "A long short-term memory with a recurrent projection over the rows of each sequence.",
       .gradient_doc = "The gradients of the long short-term memory with a projection.",
       .states_doc = "[rows, P], ragged like Input.",
       .initial_doc = "[sequences, P]: the projection at the start; 0 if absent.",
       .weight_doc = "[P, 4H]: of the projection, for c~, i, f and o.",
       .has_projection = true,
       .reads = {ForShape("Input"), "Weight", "ProjWeight", "Bias", "H0", "C0", "Projection",
                 "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden", "Projection@GRAD",
                 Optional("Cell@GRAD")},
       .writes = {"Input@GRAD", "Weight@GRAD", "ProjWeight@GRAD", "Bias@GRAD", "H0@GRAD",
                  "C0@GRAD"}});
}

}  // namespace skiff
