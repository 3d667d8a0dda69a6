#include "operators/collective/kernels/slice_reduction.h"

#include <algorithm>
#include <cstddef>

#include "framework/comm/world.h"

namespace skiff {
namespace {

// The regions of scratch memory. Those behind kReceived are for lists, whose slices may have to be
// packed: the slices for others, then the result; and this rank's own slice.
enum Region { kReceived, kPacked, kOwn };

}  // namespace

SliceReduction::SliceReduction(PrepareContext& context, const Reducer& reducer,
                               RankReduction reduction, DType dtype, DType result_dtype,
                               size_t arrays, int64_t element_count)
    : reducer_(reducer),
      reduction_(reduction),
      dtype_(dtype),
      result_dtype_(result_dtype),
      scratch_(context, element_count, std::max(SizeOf(dtype), SizeOf(result_dtype)),
               arrays > 1 ? 3 : 1) {}

void SliceReduction::AllReduce(const KernelContext& run, InArrays* x, double factor,
                               OutArrays* out) {
  const World& world = WorldOf(run);
  const int64_t piece = scratch_.ElementsOfRank(world.size) * world.size;
  int64_t begin = 0;
  // At least one exchange, even of nothing: a rank with other elements is found out.
  do {
    const int64_t count = std::min(piece, x->element_count() - begin);
    CutAllReduce(begin, count, world.size);
    const int64_t own = slices_[static_cast<size_t>(world.rank)].begin;
    const void* reduced = ReduceOwn(run, x, factor, own, out);
    GatherSlices(run, slices_, reduced, scratch_.Region(run, kReceived), &messages_, out);
    begin += count;
  } while (begin < x->element_count());
}

void SliceReduction::ReduceScatter(const KernelContext& run, InArrays* x, double factor,
                                   std::span<const ListSlice> parts, int64_t out_begin,
                                   OutArrays* out) {
  const int64_t piece = scratch_.ElementsOfRank(WorldOf(run).size);
  const int64_t largest = std::ranges::max(parts, {}, &ListSlice::count).count;
  int64_t begin = 0;
  do {
    CutReduceScatter(begin, piece, parts);
    ReduceOwn(run, x, factor, out_begin + begin, out);
    begin += piece;
  } while (begin < largest);
}

void SliceReduction::CutAllReduce(int64_t begin, int64_t count, int32_t ranks) {
  slices_.clear();
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const int64_t first = count * rank / ranks;
    slices_.push_back({.begin = begin + first, .count = count * (rank + 1) / ranks - first});
  }
}

void SliceReduction::CutReduceScatter(int64_t begin, int64_t count,
                                      std::span<const ListSlice> parts) {
  slices_.clear();
  for (const ListSlice& part : parts) {
    slices_.push_back(
        {.begin = part.begin + begin, .count = std::clamp(part.count - begin, int64_t{0}, count)});
  }
}

const void* SliceReduction::ReduceOwn(const KernelContext& run, InArrays* x, double factor,
                                      int64_t begin, OutArrays* out) {
  const World& world = WorldOf(run);
  const ListSlice& own = slices_[static_cast<size_t>(world.rank)];
  const auto find_or_pack = [&](const ListSlice& slice, Region region, int64_t at) -> const void* {
    if (const std::byte* found = x->Find(slice.begin, slice.count); found != nullptr) return found;
    if (slice.count == 0) return nullptr;
    std::byte* packed = static_cast<std::byte*>(scratch_.Region(run, region)) + at * SizeOf(dtype_);
    x->CopyTo(run, slice.begin, slice.count, packed);
    return packed;
  };
  auto* received = static_cast<std::byte*>(scratch_.Region(run, kReceived));
  int64_t packed = 0;
  for (int32_t rank = 0; rank < world.size; ++rank) {
    if (rank == world.rank) continue;
    const ListSlice& slice = slices_[static_cast<size_t>(rank)];
    messages_.Send(rank, find_or_pack(slice, kPacked, packed), slice.count * SizeOf(dtype_));
    packed += slice.count;
    messages_.Receive(rank, received, own.count * SizeOf(dtype_));
    received += own.count * SizeOf(dtype_);
  }
  messages_.Exchange(run);
  void* place = out->Find(begin, own.count);
  // The packed slices have gone.
  void* result = place != nullptr || own.count == 0 ? place : scratch_.Region(run, kPacked);
  reducer_.Reduce(run, {.reduction = reduction_,
                        .factor = factor,
                        .dtype = dtype_,
                        .result_dtype = result_dtype_,
                        .rank = world.rank,
                        .ranks = world.size,
                        .count = own.count,
                        .own = find_or_pack(own, kOwn, 0),
                        .received = scratch_.Region(run, kReceived),
                        .result = result});
  if (place == nullptr) out->CopyFrom(run, result, begin, own.count);
  return result;
}

}  // namespace skiff
