#include "tests/fuzz/small_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "framework/base/place.h"
#include "memory/allocator.h"
#include "memory/places.h"

namespace skiff::fuzz {
namespace {

constexpr int64_t kBufferBytes = int64_t{16} << 20;
#ifndef __SANITIZE_ADDRESS__
constexpr rlim_t kAddresses = rlim_t{512} << 20;

rlim_t UsedAddresses() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}
#endif

}  // namespace

SmallMemory::SmallMemory() {
  Allocator& buffers = AllocatorOf(Place::Cpu());
  buffers.ReleaseCached();
  const AllocatorStatistics now = buffers.statistics();
  outer_buffers_ = now.limit_bytes;
  buffers.SetLimit(now.reserved_bytes + kBufferBytes);
#ifndef __SANITIZE_ADDRESS__
  getrlimit(RLIMIT_AS, &outer_addresses_);
  rlimit small = outer_addresses_;
  small.rlim_cur = std::min(small.rlim_cur, UsedAddresses() + kAddresses);
  setrlimit(RLIMIT_AS, &small);
#endif
}

SmallMemory::~SmallMemory() {
  AllocatorOf(Place::Cpu()).SetLimit(outer_buffers_);
#ifndef __SANITIZE_ADDRESS__
  setrlimit(RLIMIT_AS, &outer_addresses_);
#endif
}

}  // namespace skiff::fuzz
