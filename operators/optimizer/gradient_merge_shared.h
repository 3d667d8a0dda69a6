// What gradient_merge and gradient_merge_rows have in common: where in a round a run stands.
//
// A round is `steps` runs, whose gradients add up. The first one's is the sum; in the last one,
// with `mean`, the sum is divided by their number.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace skiff {

// The input Count, and the attributes steps and mean.
SlotDef RoundCountSlot();
std::vector<AttrDef> RoundAttrs();
// Error unless Count is one int64 and steps positive.
void CheckRound(const OpContext& context);

struct RoundPosition {
  bool is_first = false;
  bool is_last = false;
  double factor = 1;  // of the sum, behind the addition
};

class Round {
 public:
  explicit Round(const OpContext& context);
  RoundPosition Position(const KernelContext& run) const;

 private:
  int count_;
  int64_t steps_;
  bool mean_;
};

}  // namespace skiff
