#include "operators/common/ranks/scratch.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {
namespace {

// On the CPU, what the second cache holds; on a device, messages that keep its links busy.
constexpr int64_t kHostBytes = int64_t{1} << 20;
constexpr int64_t kDeviceBytes = int64_t{16} << 20;

constexpr int64_t kMostRanks = 8192;

}  // namespace

Scratch::Scratch(PrepareContext& context, int64_t element_count, int64_t element_bytes, int regions)
    : most_elements_((context.place().is_cpu() ? kHostBytes : kDeviceBytes) / element_bytes) {
  // Slices of a few elements are rounded up: one more for each rank.
  const int64_t elements = std::min(most_elements_, element_count + kMostRanks);
  for (int i = 0; i < regions; ++i) {
    regions_.push_back(context.RequestWorkspace(elements * element_bytes));
  }
}

int64_t Scratch::ElementsOfRank(int32_t ranks) const {
  SKIFF_ENFORCE(ranks <= kMostRanks, kUnimplemented, "an op on ", ranks,
                " ranks, expected at most ", kMostRanks);
  return most_elements_ / std::max(1, ranks - 1);
}

}  // namespace skiff
