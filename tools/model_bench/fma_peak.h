// The machine's float32 FMA peak, measured: what compute-bound kernels are held against.
#pragma once

namespace skiff {

// FLOP/s over all OpenMP threads with the widest vectors of this processor, best of several short
// runs. Takes about 0.1 s.
double MeasureFmaPeak();

}  // namespace skiff
