// Measures the machine's float32 FMA peak, the yardstick of compute-bound kernels.
#pragma once

namespace skiff {

// Returns FLOP/s over all OpenMP threads with the widest vectors of this processor, the best of
// several short runs. Takes about 0.1 s.
double MeasureFmaPeak();

}  // namespace skiff
