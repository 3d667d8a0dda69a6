// The cell of gru_unit, on all places.
#pragma once

#include <string_view>

#include "operators/sequence/kernels/gru_cell.h"

namespace skiff {

// Returns the activation that an int attribute numbers.
inline RecurrentActivation NumberedActivation(const OpContext& context,
                                              std::string_view attribute) {
  static constexpr RecurrentActivation kActivations[] = {
      RecurrentActivation::kIdentity, RecurrentActivation::kSigmoid, RecurrentActivation::kTanh,
      RecurrentActivation::kRelu};
  return kActivations[context.IntAttr(attribute)];
}

// Returns the cell without bias.
template <typename T>
GruCell<T> UnitCell(const OpContext& context) {
  return {.size = context.Input("HiddenPrev").shape[1],
          .gate = NumberedActivation(context, "gate_activation"),
          .candidate = NumberedActivation(context, "activation"),
          .origin_mode = context.Attr<bool>("origin_mode")};
}

}  // namespace skiff
