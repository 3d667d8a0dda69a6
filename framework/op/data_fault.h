// Data that a kernel on a device refuses: how it tells the host, which throws the Error.
#pragma once

#include <cstdint>

namespace skiff {

// An element that a kernel refuses, such as a label that is no class.
struct DataFault {
  int64_t position = 0;  // the element's index
  int64_t value = 0;     // from the range of int32, whose ends stand for all beyond
};

// The word that says that there is none.
inline constexpr uint64_t kNoDataFault = ~uint64_t{0};

// Returns a fault as a word. Of two faults, the one with the lower position has the smaller word.
// So if each thread keeps the minimum, the first fault is left, whatever the order of the threads.
// `position` is less than 2^32 - 1.
constexpr uint64_t DataFaultWord(int64_t position, int64_t value) {
  constexpr int64_t kLowest = -(int64_t{1} << 31);
  constexpr int64_t kHighest = (int64_t{1} << 31) - 1;
  const int64_t held = value < kLowest ? kLowest : value > kHighest ? kHighest : value;
  return static_cast<uint64_t>(position) << 32 | static_cast<uint64_t>(held - kLowest);
}

// Returns the fault that a word other than kNoDataFault holds.
constexpr DataFault DataFaultOf(uint64_t word) {
  return {.position = static_cast<int64_t>(word >> 32),
          .value = static_cast<int64_t>(word & 0xFFFFFFFF) - (int64_t{1} << 31)};
}

}  // namespace skiff
