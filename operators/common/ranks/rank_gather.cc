#include "operators/common/ranks/rank_gather.h"

#include <cstddef>

namespace skiff {

void GatherFromOthers(const KernelContext& run, const void* own, int64_t bytes, void* received,
                      Messages* messages) {
  const World& world = WorldOf(run);
  if (world.size == 1) return;
  auto* to = static_cast<std::byte*>(received);
  for (int32_t rank = 0; rank < world.size; ++rank) {
    if (rank == world.rank) continue;
    messages->Send(rank, own, bytes);
    messages->Receive(rank, to, bytes);
    to += bytes;
  }
  messages->Exchange(run);
}

}  // namespace skiff
