// Measures the most multiply-adds per second of the machine, the yardstick of compute-bound
// kernels.
#pragma once

namespace skiff {

// Returns FLOP/s of float32 over all OpenMP threads with the widest vectors of this processor, the
// best of several short runs. Takes about 0.1 s.
double MeasureFmaPeak();
// The same of products of bfloat16, which are added up in float32; 0 unless UsesAvx512Bf16().
double MeasureBf16Peak();

}  // namespace skiff
