// What each rank knows, known to all: few items of each rank, on every rank, in the order of ranks.
// What a kernel then computes of the items has the same bits on all ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "framework/base/element_count.h"
#include "framework/op/kernel.h"
#include "operators/common/ranks/messages.h"
#include "operators/common/ranks/scratch.h"

namespace skiff {

// Items [begin, begin + count) of all ranks.
template <typename Item>
struct GatheredItems {
  int64_t begin = 0;
  int64_t count = 0;
  int32_t rank = 0;
  int32_t ranks = 1;
  const Item* own = nullptr;       // of this rank
  const Item* received = nullptr;  // of the other ranks, one after the other, in order

  // Returns item begin + i of a rank.
  constexpr const Item& Of(int32_t of_rank, int64_t i) const {
    if (of_rank == rank) return own[i];
    return received[(of_rank < rank ? of_rank : of_rank - 1) * count + i];
  }
};

// Sends the bytes of `own` to all other ranks, and receives the bytes of each of them.
// place_of(rank), a std::span<std::byte>, is where the bytes of a rank go; it is called once for
// each other rank, in the order of ranks. Does nothing if there are no other ranks. On a device, it
// appends the work to the stream. Throws what Communicator::Exchange throws.
template <typename PlaceOf>
void GatherFromOthers(const KernelContext& run, std::span<const std::byte> own,
                      const PlaceOf& place_of, Messages* messages) {
  const World& world = WorldOf(run);
  if (world.size == 1) return;
  for (int32_t rank = 0; rank < world.size; ++rank) {
    if (rank == world.rank) continue;
    const std::span<std::byte> place = place_of(rank);
    messages->Send(rank, own.data(), std::ssize(own));
    messages->Receive(rank, place.data(), std::ssize(place));
  }
  messages->Exchange(run);
}

template <typename Item>
class RankGather {
  static_assert(std::is_trivially_copyable_v<Item>);
  static constexpr auto kItemBytes = static_cast<int64_t>(sizeof(Item));

 public:
  // `items`: of each rank, as many on all ranks.
  RankGather(PrepareContext& context, int64_t items)
      : items_(items),
        own_(context.RequestWorkspace(items * kItemBytes)),
        scratch_(context, kMaxElementCount, kItemBytes, 1) {}

  // Returns where the kernel puts the items of this rank.
  Item* Own(const KernelContext& run) const { return static_cast<Item*>(run.workspace(own_)); }

  // Gathers the items of all ranks, and calls visit(gathered) for parts of them, of which there is
  // one as a rule. On a device, the work is appended to the stream. Throws what
  // Communicator::Exchange throws.
  template <typename Visit>
  void Run(const KernelContext& run, const Visit& visit) {
    const World& world = WorldOf(run);
    const int64_t piece = scratch_.ElementsOfRank(world.size);
    for (int64_t begin = 0; begin < items_; begin += piece) {
      auto* received = static_cast<Item*>(scratch_.Region(run, 0));
      const GatheredItems<Item> part{.begin = begin,
                                     .count = std::min(piece, items_ - begin),
                                     .rank = world.rank,
                                     .ranks = world.size,
                                     .own = Own(run) + begin,
                                     .received = received};
      Gather(run, part, received);
      visit(part);
    }
  }

 private:
  void Gather(const KernelContext& run, const GatheredItems<Item>& part, Item* received) {
    const auto count = static_cast<size_t>(part.count);
    const auto place_of_next = [&](int32_t) {
      const std::span<Item> place(received, count);
      received += count;
      return std::as_writable_bytes(place);
    };
    GatherFromOthers(run, std::as_bytes(std::span(part.own, count)), place_of_next, &messages_);
  }

  int64_t items_;
  int own_;
  Scratch scratch_;
  Messages messages_;
};

}  // namespace skiff
