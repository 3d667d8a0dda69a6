// Rounds of runs whose gradients add up, for gradient_merge and gradient_merge_rows.
//
// A round is `steps` runs. The sum after the first run is that run's gradient. With `mean`, the
// last run divides the sum by the number of runs, Count.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/arguments.h"
#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace skiff {

// Return the definitions of the input Count and of the attributes steps and mean.
SlotDef RoundCountSlot();
std::vector<AttrDef> RoundAttrs();
// Throws Error unless Count is one int64 and steps is positive.
void CheckRound(const OpContext& context);

// The position of a run in its round.
struct RoundPosition {
  bool is_first = false;
  bool is_last = false;
  double factor = 1;  // multiplies the sum, after the addition
};

class Round {
 public:
  explicit Round(const OpContext& context);
  // Returns the position of the run that Count says.
  RoundPosition Position(const KernelContext& run) const;

 private:
  In<int64_t> count_;
  int64_t steps_;
  bool mean_;
};

}  // namespace skiff
