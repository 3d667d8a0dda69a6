// Measures the machine's memory bandwidth, the yardstick of memory-bound kernels.
#pragma once

namespace skiff {

// Returns bytes/s of a[i] = b[i] + 3 c[i] over all OpenMP threads, on arrays of 64 MiB, the median
// of several runs. Counts two reads and one write (McCalpin, STREAM, 1995). Takes about 0.2 s.
double MeasureTriad();

}  // namespace skiff
