// What ranks tell each other: few numbers, and texts. All functions take a communicator of memory
// on the CPU, or nullptr for a single rank; all ranks call them in the same order; they throw what
// Exchange throws.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/comm/communicator.h"

namespace skiff {

// Returns the ranks; 1 for nullptr.
int32_t RankCount(const Communicator* communicator);

// Sets all[r * bytes …] to the bytes of rank r. Every rank gives equally many bytes; `all` has room
// for the bytes of all ranks, and doesn't overlap `own`.
void GatherBytes(Communicator* communicator, const void* own, int64_t bytes, void* all);

// Returns the numbers of all ranks in the order of the ranks. Every rank gives equally many.
// GatherNumbers<double>(communicator, vector) takes a vector.
template <typename T>
std::vector<T> GatherNumbers(Communicator* communicator, std::span<const T> numbers) {
  static_assert(std::is_arithmetic_v<T>);
  std::vector<T> all(RankCount(communicator) * numbers.size());
  GatherBytes(communicator, numbers.data(), numbers.size_bytes(), all.data());
  return all;
}

// Returns the number of each rank.
template <typename T>
std::vector<T> GatherNumbers(Communicator* communicator, T number) {
  return GatherNumbers(communicator, std::span<const T>(&number, 1));
}

// Returns the largest number of all ranks.
template <typename T>
T MaxOverRanks(Communicator* communicator, T number) {
  return std::ranges::max(GatherNumbers(communicator, number));
}

// Returns the text of each rank. The texts may have any lengths.
std::vector<std::string> GatherTexts(Communicator* communicator, std::string_view text);

}  // namespace skiff
