#include "operators/collective/kernels/slice_gather.h"

#include <cstddef>

#include "operators/collective/kernels/collective_definition.h"

namespace skiff {

void GatherSlices(const KernelContext& run, std::span<const ListSlice> slices, const void* own,
                  void* scratch, Messages* messages, OutArrays* out) {
  const World& world = WorldOf(run);
  const int64_t element_bytes = SizeOf(out->dtype());
  const auto for_each_other = [&](const auto& visit) {
    auto* unplaced = static_cast<std::byte*>(scratch);
    for (int32_t rank = 0; rank < world.size; ++rank) {
      if (rank == world.rank) continue;
      const ListSlice& slice = slices[static_cast<size_t>(rank)];
      visit(rank, slice, out->Find(slice.begin, slice.count), unplaced);
      unplaced += slice.count * element_bytes;
    }
  };
  const int64_t own_bytes = slices[static_cast<size_t>(world.rank)].count * element_bytes;
  for_each_other([&](int32_t rank, const ListSlice& slice, void* place, void* unplaced) {
    messages->Send(rank, own, own_bytes);
    messages->Receive(rank, place != nullptr ? place : unplaced, slice.count * element_bytes);
  });
  messages->Exchange(run);
  for_each_other([&](int32_t, const ListSlice& slice, void* place, void* unplaced) {
    if (place == nullptr) out->CopyFrom(run, unplaced, slice.begin, slice.count);
  });
}

}  // namespace skiff
