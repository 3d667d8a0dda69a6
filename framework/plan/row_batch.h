// How many rows an op in the body of a loop runs on at once (Batching).
#pragma once

#include <cstdint>

#include "framework/plan/plan.h"

namespace skiff {

// Returns the most rows that an instruction with a RowRule collects of several iterations: as many
// as have twice the bytes of its weights (of the inputs that aren't rows, or of the sums), and at
// most 512, with which a product runs at full speed. Doesn't depend on the number of planned rows.
// So plans for a batch and for batches of about the same size compute the same bits.
int64_t MostBatchRows(const Plan& body, const Instruction& instruction);

}  // namespace skiff
