// Activations that int attributes number, as in gru_unit.
#pragma once

#include <string_view>

#include "framework/op/op_context.h"
#include "operators/sequence/kernels/recurrent_activation.h"

namespace skiff {

// Returns the activation that an int attribute numbers.
inline RecurrentActivation NumberedActivation(const OpContext& context,
                                              std::string_view attribute) {
  static constexpr RecurrentActivation kActivations[] = {
      RecurrentActivation::kIdentity, RecurrentActivation::kSigmoid, RecurrentActivation::kTanh,
      RecurrentActivation::kRelu};
  return kActivations[context.IntAttr(attribute)];
}

}  // namespace skiff
