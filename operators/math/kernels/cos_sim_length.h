// The length of a row that cos_sim divides by.
#pragma once

#include <limits>

namespace skiff {

// Returns the length as XNorm and YNorm have it, which is of type T, unless T doesn't hold it as a
// normal number: then as it is.
template <typename T>
constexpr double LengthAs(double length) {
  using Limits = std::numeric_limits<T>;
  const bool is_held =
      length >= static_cast<double>(Limits::min()) && length <= static_cast<double>(Limits::max());
  return is_held ? static_cast<double>(static_cast<T>(length)) : length;
}

}  // namespace skiff
