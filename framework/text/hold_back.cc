#include "framework/text/hold_back.h"

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"

namespace skiff::text {

int64_t HeldBackCount(int64_t size, double fraction, std::string_view source) {
  const int64_t count = std::max<int64_t>(1, std::llround(fraction * static_cast<double>(size)));
  SKIFF_ENFORCE(fraction > 0 && count < size, kInvalidArgument, source,
                ": cannot hold back a share of ", fraction, " of ", size,
                " examples: one has to be left, and one held back");
  return count;
}

}  // namespace skiff::text
