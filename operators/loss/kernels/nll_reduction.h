// What nll_loss makes of the loss of each item, for all places.
#pragma once

#include <string>

#include "framework/op/op_context.h"

namespace skiff {

enum class NllReduction { kNone, kSum, kMean };

inline NllReduction NllReductionOf(const OpContext& context) {
  const auto& reduction = context.Attr<std::string>("reduction");
  if (reduction == "none") return NllReduction::kNone;
  return reduction == "sum" ? NllReduction::kSum : NllReduction::kMean;
}

// Returns the reduced loss. The mean of items that weigh nothing is 0, as in PaddlePaddle.
constexpr double ReducedNll(NllReduction reduction, double sum, double total_weight) {
  return reduction == NllReduction::kMean && total_weight != 0 ? sum / total_weight : sum;
}

// Returns the gradient of an item's log-probability. `dout` is the gradient of the item's loss, or
// of the reduced loss.
template <typename T>
constexpr T NllGradient(NllReduction reduction, T weight, T dout, T total_weight) {
  if (reduction != NllReduction::kMean) return -weight * dout;
  return total_weight == T{0} ? T{0} : -weight * dout / total_weight;
}

}  // namespace skiff
