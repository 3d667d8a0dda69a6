// The declarations that a .cu file has from nvcc and not from <cuda_runtime.h>, for g++: compile.sh
// includes it before everything else. The file has everything that Skiff's kernels use. If
// something is missing here, the kernel doesn't compile: add it.
#pragma once

#include <cuda_runtime.h>

#include <cmath>    // nvcc includes it, too
#include <cstring>  // and this one
#include <memory>
#include <source_location>
#include <type_traits>

#include "tools/cuda/emulation/launch.h"

#undef __launch_bounds__
#define __launch_bounds__(...)

// Calls, since each read of a variable in a .cu file is checked; the compiler makes one for many.
#define threadIdx skiff::cuda_emulation::ThreadIdx()
#define blockIdx skiff::cuda_emulation::BlockIdx()
#define blockDim skiff::cuda_emulation::BlockDim()
#define gridDim skiff::cuda_emulation::GridDim()
inline constexpr int warpSize = 32;

namespace skiff::cuda_emulation {

inline constexpr unsigned kLanes = 32;

// Only kernels may call the functions below, except Launch. If a kernel does something wrong, the
// launch fails: the mistake is reported (failures.h), no thread of the launch goes on, and the call
// doesn't return.

// Return threadIdx, blockIdx, blockDim and gridDim of the running thread, the same in every call.
[[gnu::const]] uint3 ThreadIdx();
[[gnu::const]] uint3 BlockIdx();
[[gnu::const]] dim3 BlockDim();
[[gnu::const]] dim3 GridDim();

// rewrite.py makes calls of the next three out of <<<>>> and __shared__.

// Gives a call of the kernel, with copies of the arguments, to the stream of `shape`. If no device
// could launch it, or the stream refuses it, that becomes the host thread's last error
// (cudaGetLastError). Messages have the kernel's name and, from `where`, the function that launched
// it.
template <class Kernel, class... Arguments>
void Launch(const char* name, const LaunchShape& shape, Where where, Kernel kernel,
            Arguments... arguments) {
  static_assert((std::is_trivially_copyable_v<Arguments> && ...), "the device gets a copy");
  auto call = [kernel, arguments...] { kernel(arguments...); };
  using Call = decltype(call);
  const auto run = [](const void* of_launch) { (*static_cast<const Call*>(of_launch))(); };
  GiveToStream({name, shape, run, std::make_shared<const Call>(call), sizeof(Call), where});
}

// Returns the shared variable that the running block knows by `key`. The block's first call for a
// key makes the variable, of `bytes`, all of them 0xFF. The launch fails if the block has more than
// 48 KiB of shared memory then. Messages have the variable's name.
void* SharedVariable(const void* key, size_t bytes, const char* name);

// Returns the running block's dynamic shared memory, LaunchShape::shared_bytes of it.
void* DynamicSharedMemory();

// Waits until all threads of the block wait in SyncThreads. The launch fails if a thread ends
// instead or, from another `where`, waits at another barrier.
void SyncThreads(Where where);

// Lets lanes of a warp pass values to each other. It waits until all lanes of `mask` have called it
// with the same mask and `function`, the name of the function that the kernel calls. Each lane
// gives the `bytes` at `value`, 8 at most, and gets at `result` what lane number `lane`, modulo 32,
// has given. If `lane` is -1, each gets the bytes of all 32 lanes, in order. Bytes of a lane that
// isn't in the mask are all 0xFF. Only "__syncwarp" orders the warp's accesses to memory, too. The
// launch fails if the caller isn't in the mask, if a lane in it can't come, or if `bytes` is more
// than 8.
void Exchange(unsigned mask, const char* function, const void* value, size_t bytes, int lane,
              void* result, Where where);

// Returns the running thread's number in its warp, from 0 to 31.
unsigned LaneId();

// From SetAtomic(true) to SetAtomic(false), the running thread's accesses are atomic: two atomic
// ones never race. The thread doesn't wait in between.
void SetAtomic(bool is_atomic);

// Notes that the block has called __threadfence: until the end of the block, it may read what other
// blocks have written.
void PassFence();

// Returns the value that `lane` gives in an Exchange, to which the caller gives `value`.
template <class T>
T FromLane(unsigned mask, const char* function, T value, unsigned lane, Where where) {
  T result;
  Exchange(mask, function, &value, sizeof(T), static_cast<int>(lane), &result, where);
  return result;
}

// Calls take(lane, value) for each lane of the mask, in their order, with the value that the lane
// gives in an Exchange, to which the caller gives `value`.
template <class T, class Take>
void ForEachLane(unsigned mask, const char* function, T value, Where where, const Take& take) {
  T values[kLanes];
  Exchange(mask, function, &value, sizeof(T), -1, values, where);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) != 0) take(lane, values[lane]);
  }
}

// Sets *at to next(*at), atomically, and returns the old value.
template <class T, class Next>
T Exchanged(T* at, const Next& next) {
  SetAtomic(true);
  T old;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  T desired = next(old);
  while (!__atomic_compare_exchange(at, &old, &desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    desired = next(old);
  }
  SetAtomic(false);
  return old;
}

}  // namespace skiff::cuda_emulation

// ---- barriers and warps

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  skiff::cuda_emulation::SyncThreads(where);
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFF,
                       std::source_location where = std::source_location::current()) {
  const int nothing = 0;
  int result;
  skiff::cuda_emulation::Exchange(mask, "__syncwarp", &nothing, sizeof(int), 0, &result, where);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize,
              std::source_location where = std::source_location::current()) {
  const unsigned first = skiff::cuda_emulation::LaneId() & ~static_cast<unsigned>(width - 1);
  const unsigned from = first + (static_cast<unsigned>(lane) & static_cast<unsigned>(width - 1));
  return skiff::cuda_emulation::FromLane(mask, "__shfl_sync", value, from, where);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = warpSize,
                 std::source_location where = std::source_location::current()) {
  const unsigned lane = skiff::cuda_emulation::LaneId();
  const bool is_inside = (lane & static_cast<unsigned>(width - 1)) >= distance;
  return skiff::cuda_emulation::FromLane(mask, "__shfl_up_sync", value,
                                         is_inside ? lane - distance : lane, where);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = warpSize,
                   std::source_location where = std::source_location::current()) {
  const unsigned lane = skiff::cuda_emulation::LaneId();
  const unsigned in_width = lane & static_cast<unsigned>(width - 1);
  const bool is_inside = in_width + distance < static_cast<unsigned>(width);
  return skiff::cuda_emulation::FromLane(mask, "__shfl_down_sync", value,
                                         is_inside ? lane + distance : lane, where);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize,
                  std::source_location where = std::source_location::current()) {
  const unsigned lane = skiff::cuda_emulation::LaneId();
  const unsigned from = lane ^ static_cast<unsigned>(lanes);
  const unsigned behind = (lane & ~static_cast<unsigned>(width - 1)) + static_cast<unsigned>(width);
  return skiff::cuda_emulation::FromLane(mask, "__shfl_xor_sync", value,
                                         from < behind ? from : lane, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location where = std::source_location::current()) {
  unsigned ballot = 0;
  skiff::cuda_emulation::ForEachLane(
      mask, "__ballot_sync", predicate, where,
      [&](unsigned lane, int is_set) { ballot |= is_set != 0 ? 1U << lane : 0; });
  return ballot;
}

template <class T>
T __reduce_add_sync(unsigned mask, T value,
                    std::source_location where = std::source_location::current()) {
  T sum = 0;
  skiff::cuda_emulation::ForEachLane(mask, "__reduce_add_sync", value, where,
                                     [&](unsigned, T of_lane) { sum += of_lane; });
  return sum;
}

// ---- atomics

template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return skiff::cuda_emulation::Exchanged(at, [&](T old) -> T { return old + value; });
}

template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return skiff::cuda_emulation::Exchanged(at, [&](T old) { return value < old ? value : old; });
}

template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return skiff::cuda_emulation::Exchanged(at, [&](T old) { return old < value ? value : old; });
}

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  skiff::cuda_emulation::PassFence();
}

// ---- a store with a hint; bits

template <class T>
void __stwb(T* to, std::type_identity_t<T> value) {
  *to = value;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
