// A store to memory normally first reads the cache line that it is part of. Non-temporal stores of
// whole lines don't, which saves a third of the traffic of a copy, but they are worth it only if
// the target would be evicted before it is read. They are weakly ordered: hence EndStreams, a store
// fence.
#include "operators/tensor/kernels/stream_copy.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/tensor/kernels/stream_copy.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `bytes` and the address of the target are multiples of a cache line.
void StreamLines(const uint8_t* source, uint8_t* target, int64_t bytes) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < bytes; i += step) hn::Stream(hn::LoadU(d, source + i), d, target + i);
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(StreamLines);

void StreamRow(const void* source, void* target, int64_t bytes) {
  constexpr int64_t kLine = 64;
  const auto* from = static_cast<const uint8_t*>(source);
  auto* to = static_cast<uint8_t*>(target);
  // The lines that aren't the target's alone, at both ends, are written by ordinary stores.
  const auto beyond_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine);
  const int64_t head = std::min(bytes, beyond_line == 0 ? 0 : kLine - beyond_line);
  const int64_t lines = (bytes - head) / kLine * kLine;
  std::memcpy(to, from, static_cast<size_t>(head));
  HWY_DYNAMIC_DISPATCH(StreamLines)(from + head, to + head, lines);
  std::memcpy(to + head + lines, from + head + lines, static_cast<size_t>(bytes - head - lines));
}

void EndStreams() { hwy::FlushStream(); }

}  // namespace skiff
#endif
