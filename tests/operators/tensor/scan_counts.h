// A kernel of the sort of rows, by itself.
#pragma once

#include <cstdint>
#include <vector>

namespace skiff::harness {

// Scans the counts of all digits, [digits][tiles], on the device. Returns the results, followed by
// the total of each digit; nothing if a call fails.
std::vector<uint32_t> ScanCountsOnDevice(const std::vector<uint32_t>& counts, uint32_t tiles);

}  // namespace skiff::harness
