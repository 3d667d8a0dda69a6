#include "operators/sequence/kernels/lstm_layer.h"

#include "framework/base/element_count.h"

namespace skiff {

int64_t LstmBiasWidth(const OpContext& context, int64_t size) {
  return size < 0 ? -1 : MultiplyCounts(size, HasPeepholes(context) ? 7 : 4);
}

std::vector<AttrDef> LstmAttributes() {
  return {{.name = "use_peepholes",
           .type = AttrType::kBool,
           .default_value = true,
           .doc = "Whether the gates see the cell, through w_i, w_f and w_o."},
          {.name = "is_reverse",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether the last row of a sequence comes first."},
          ActivationAttr("gate_activation", "sigmoid", "Of i, f and o."),
          ActivationAttr("cell_activation", "tanh", "Of the cell, in the hidden state."),
          ActivationAttr("candidate_activation", "tanh", "Of c~.")};
}

}  // namespace skiff
