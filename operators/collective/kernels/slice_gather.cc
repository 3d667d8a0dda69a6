#include "operators/collective/kernels/slice_gather.h"

#include <cstddef>
#include <utility>

#include "operators/common/ranks/rank_gather.h"

namespace skiff {

void GatherSlices(const KernelContext& run, std::span<const ListSlice> slices, const void* own,
                  void* scratch, Messages* messages, OutArrays* out) {
  const World& world = WorldOf(run);
  const int64_t element_bytes = SizeOf(out->dtype());
  const auto bytes_of = [&](int32_t rank) {
    return static_cast<size_t>(slices[static_cast<size_t>(rank)].count * element_bytes);
  };
  auto* unplaced = static_cast<std::byte*>(scratch);
  const auto place_of = [&](int32_t rank) {
    const ListSlice& slice = slices[static_cast<size_t>(rank)];
    std::byte* place = out->Find(slice.begin, slice.count);
    if (place == nullptr) place = std::exchange(unplaced, unplaced + bytes_of(rank));
    return std::span(place, bytes_of(rank));
  };
  const std::span of_this_rank(static_cast<const std::byte*>(own), bytes_of(world.rank));
  GatherFromOthers(run, of_this_rank, place_of, messages);
  const auto* received = static_cast<const std::byte*>(scratch);
  for (int32_t rank = 0; rank < world.size; ++rank) {
    const ListSlice& slice = slices[static_cast<size_t>(rank)];
    if (rank == world.rank || out->Find(slice.begin, slice.count) != nullptr) continue;
    out->CopyFrom(run, received, slice.begin, slice.count);
    received += bytes_of(rank);
  }
}

}  // namespace skiff
