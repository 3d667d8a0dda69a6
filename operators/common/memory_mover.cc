#include "operators/common/memory_mover.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/common/half.h"

namespace skiff {
namespace {

// The number of bytes that is worth a thread of its own.
constexpr int64_t kGrainBytes = int64_t{64} << 10;

// Calls move(run) for each run, in parallel if there are many bytes.
template <typename Move>
void ForEachRun(std::span<const MemoryRun> runs, const Move& move) {
  const auto count = static_cast<int64_t>(runs.size());
  int64_t bytes = 0;
  for (const MemoryRun& run : runs) bytes += run.bytes;
  const int64_t grain = bytes == 0 ? count : std::max<int64_t>(1, kGrainBytes * count / bytes);
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) move(runs[static_cast<size_t>(i)]);
  });
}

template <typename T>
void AddElements(const MemoryRun& run) {
  const auto* from = static_cast<const T*>(run.from);
  auto* to = static_cast<T*>(run.to);
  const int64_t count = run.bytes / static_cast<int64_t>(sizeof(T));
  using Wide = WideType<T>;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<T>(static_cast<Wide>(to[i]) + static_cast<Wide>(from[i]));
  }
}

class HostMover final : public MemoryMover {
 public:
  void CopyBytes(const KernelContext&, const void* source, void* target,
                 int64_t bytes) const override {
    skiff::CopyBytes(source, target, bytes);
  }
  void ZeroBytes(const KernelContext&, void* target, int64_t bytes) const override {
    skiff::ZeroBytes(target, bytes);
  }
  void CopyRuns(const KernelContext&, std::span<const MemoryRun> runs) const override {
    ForEachRun(runs, Move);
  }
  void AddRuns(const KernelContext&, DType dtype, std::span<const MemoryRun> runs) const override {
    CheckCanBeAdded("a sum on the CPU", dtype);
    VisitDType<Float16, BFloat16, float, double>(
        dtype, "a sum on the CPU", [&]<typename T>(T) { ForEachRun(runs, AddElements<T>); });
  }

 private:
  static void Move(const MemoryRun& run) {
    const auto bytes = static_cast<size_t>(run.bytes);
    if (bytes == 0) return;
    if (run.from == nullptr) {
      std::memset(run.to, 0, bytes);
    } else {
      std::memcpy(run.to, run.from, bytes);
    }
  }
};

// Registries may be filled by several threads.
constinit std::atomic<const MemoryMover*> device_mover = nullptr;

struct MoversOfDevices {
  std::mutex mutex;
  std::map<int32_t, const MemoryMover*> by_index;
  std::atomic<bool> is_used = false;  // hardly ever

  static MoversOfDevices& Get() {
    static auto& movers = *new MoversOfDevices;
    return movers;
  }
  const MemoryMover* Find(Place device) {
    if (!is_used.load(std::memory_order_acquire)) return nullptr;
    const std::lock_guard lock(mutex);
    const auto found = by_index.find(device.index);
    return found == by_index.end() ? nullptr : found->second;
  }
};

}  // namespace

void CopyBytes(const void* source, void* target, int64_t bytes) {
  if (source == target) return;
  ParallelFor(bytes, kGrainBytes, [=](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(target) + begin, static_cast<const char*>(source) + begin,
                static_cast<size_t>(end - begin));
  });
}

void ZeroBytes(void* target, int64_t bytes) {
  ParallelFor(bytes, kGrainBytes, [=](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(target) + begin, 0, static_cast<size_t>(end - begin));
  });
}

const MemoryMover& MemoryMoverOf(const KernelContext& run) {
  static const HostMover host;
  const Place place = run.device().place;
  if (place.is_cpu()) return host;
  const MemoryMover* mover = MoversOfDevices::Get().Find(place);
  if (mover == nullptr) mover = device_mover.load(std::memory_order_acquire);
  SKIFF_ENFORCE(mover != nullptr, kFailedPrecondition, "nothing moves memory on ", place);
  return *mover;
}

void SetMemoryMover(const MemoryMover* mover) {
  device_mover.store(mover, std::memory_order_release);
}

void SetMemoryMover(Place device, const MemoryMover* mover) {
  MoversOfDevices& movers = MoversOfDevices::Get();
  const std::lock_guard lock(movers.mutex);
  movers.by_index[device.index] = mover;
  movers.is_used.store(true, std::memory_order_release);
}

void CheckCanBeAdded(const char* type, DType dtype) {
  SKIFF_ENFORCE(IsFloat(dtype), kUnimplemented, type, ": a sum of ", dtype, ", expected floats");
}

}  // namespace skiff
