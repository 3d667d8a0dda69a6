// Counts what `new` hands out, for tests that bound the memory a reader takes. A test that links
// this file has its global operators new and delete replaced.
#pragma once

#include <cstdint>

namespace skiff {

// Bytes that new has given and delete has not got back, and the most there were since ResetPeak.
int64_t LiveBytes();
int64_t PeakBytes();
void ResetPeak();

}  // namespace skiff
