// ERNIE's pre-training, for write_training_programs.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/oracle/training.h"

namespace skiff::oracle {

// Masked words and the next sentence by AdamW, in float64 and float32, and, in float32, with a
// schedule over `steps` and all sentence tasks. Each with a batch of the generated world.
std::vector<Training> ErnieTrainings(int64_t steps);

}  // namespace skiff::oracle
