// The machine's memory bandwidth, measured: what memory-bound kernels are held against.
#pragma once

namespace skiff {

// Bytes/s of a[i] = b[i] + 3 c[i] over all OpenMP threads, on arrays of 64 MiB, the median of
// several runs; two reads and one write are counted (McCalpin, STREAM, 1995). Takes about 0.2 s.
double MeasureTriad();

}  // namespace skiff
