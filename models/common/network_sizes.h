// Bounds of the sizes of a network, for files and flags that name them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace skiff::models {

// The most layers that are built one after the other: more than useful networks have, and few
// enough that building their ops ends.
inline constexpr int64_t kMostLayers = 1000;
// The largest size of any other kind. The product of two of them is below 2^62, so int64 holds a
// sum of two such products, too. Longer products are checked where shapes are (ElementCount).
inline constexpr int64_t kLargestSize = (int64_t{1} << 31) - 1;

struct NetworkSize {
  std::string_view name;
  int64_t value = 0;
  int64_t least = 1;
  int64_t most = kLargestSize;
};

// Throws an Error (kInvalidArgument), which begins with `network`, for the first size that isn't
// from `least` to `most`.
void CheckSizes(std::string_view network, std::initializer_list<NetworkSize> sizes);

}  // namespace skiff::models
