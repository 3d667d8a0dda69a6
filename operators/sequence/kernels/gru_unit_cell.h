// The cell of gru_unit, on all places.
#pragma once

#include <string_view>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/op_context.h"
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

// Returns the columns of the gates, -1 if they are unknown. Throws Error (kInvalidArgument) unless
// HiddenPrev is a matrix.
inline int64_t UnitGatesWidth(const OpContext& context) {
  const Shape& before = context.Input("HiddenPrev").shape;
  SKIFF_ENFORCE(before.rank() == 2, kInvalidArgument, context.op().type, ": HiddenPrev is ", before,
                ", expected a matrix");
  return before[1] < 0 ? -1 : MultiplyCounts(before[1], 3);
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
