// What a .cu file finds in nvcc and not in <cuda_runtime.h>, for g++: compile.sh includes it before
// everything else. What is missing here doesn't compile: add it.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstring>
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

// What CUDA calls so, of the running thread, which has the same as long as it runs.
[[gnu::const]] uint3 ThreadIdx();
[[gnu::const]] uint3 BlockIdx();
[[gnu::const]] dim3 BlockDim();
[[gnu::const]] dim3 GridDim();

// rewrite.py makes calls of the first three out of <<<>>> and __shared__.

template <class Kernel, class... Arguments>
void Launch(const char* name, const LaunchShape& shape, Where where, Kernel kernel,
            Arguments... arguments) {
  static_assert((std::is_trivially_copyable_v<Arguments> && ...), "the device gets a copy");
  auto call = [kernel, arguments...] { kernel(arguments...); };
  using Call = decltype(call);
  const auto run = [](const void* of_launch) { (*static_cast<const Call*>(of_launch))(); };
  GiveToStream({name, shape, run, std::make_shared<const Call>(call), sizeof(Call), where});
}

// The variable of the running block; `key` tells variables apart.
void* SharedVariable(const void* key, size_t bytes, const char* name);
void* DynamicSharedMemory();

void SyncThreads(Where where);
// Waits for all lanes of the mask, each of which gives `bytes`, up to 8, and gets those of `lane`,
// or of all 32 if it is -1. What a lane outside the mask gives is all ones.
void Exchange(unsigned mask, const char* function, const void* value, size_t bytes, int lane,
              void* result, Where where);
unsigned LaneId();
// Around what other threads may do at the same time.
void SetAtomic(bool is_atomic);
void PassFence();

template <class T>
T FromLane(unsigned mask, const char* function, T value, unsigned lane, Where where) {
  T result;
  Exchange(mask, function, &value, sizeof(T), static_cast<int>(lane), &result, where);
  return result;
}

// Calls take(value) with what each lane of the mask gives, in their order.
template <class T, class Take>
void ForEachLane(unsigned mask, const char* function, T value, Where where, const Take& take) {
  T values[kLanes];
  Exchange(mask, function, &value, sizeof(T), -1, values, where);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) != 0) take(lane, values[lane]);
  }
}

template <class T, class Combine>
T Reduce(unsigned mask, const char* function, T value, Where where, const Combine& combine) {
  bool is_first = true;
  T result = value;
  ForEachLane(mask, function, value, where, [&](unsigned, T of_lane) {
    result = is_first ? of_lane : combine(result, of_lane);
    is_first = false;
  });
  return result;
}

// *at = next(*at); returns what was there.
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

// The least that a device may answer, and the only answer that promises no convergence.
inline unsigned __activemask() { return 1U << skiff::cuda_emulation::LaneId(); }

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

inline int __any_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  return __ballot_sync(mask, predicate, where) != 0;
}

inline int __all_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  return __ballot_sync(mask, predicate, where) == mask;
}

#define SKIFF_EMULATED_REDUCE(NAME, EXPRESSION)                                                  \
  template <class T>                                                                             \
  T NAME(unsigned mask, T value, std::source_location where = std::source_location::current()) { \
    return skiff::cuda_emulation::Reduce(mask, #NAME, value, where,                              \
                                         [](T a, T b) -> T { return EXPRESSION; });              \
  }
SKIFF_EMULATED_REDUCE(__reduce_add_sync, a + b)
SKIFF_EMULATED_REDUCE(__reduce_min_sync, b < a ? b : a)
SKIFF_EMULATED_REDUCE(__reduce_max_sync, a < b ? b : a)
SKIFF_EMULATED_REDUCE(__reduce_and_sync, a& b)
SKIFF_EMULATED_REDUCE(__reduce_or_sync, a | b)
SKIFF_EMULATED_REDUCE(__reduce_xor_sync, a ^ b)
#undef SKIFF_EMULATED_REDUCE

// ---- atomics

#define SKIFF_EMULATED_ATOMIC(NAME, EXPRESSION)                                          \
  template <class T>                                                                     \
  T NAME(T* at, std::type_identity_t<T> value) {                                         \
    return skiff::cuda_emulation::Exchanged(at, [&](T old) -> T { return EXPRESSION; }); \
  }
SKIFF_EMULATED_ATOMIC(atomicAdd, old + value)
SKIFF_EMULATED_ATOMIC(atomicSub, old - value)
SKIFF_EMULATED_ATOMIC(atomicExch, value)
SKIFF_EMULATED_ATOMIC(atomicMin, value < old ? value : old)
SKIFF_EMULATED_ATOMIC(atomicMax, old < value ? value : old)
SKIFF_EMULATED_ATOMIC(atomicAnd, old& value)
SKIFF_EMULATED_ATOMIC(atomicOr, old | value)
SKIFF_EMULATED_ATOMIC(atomicXor, old ^ value)
SKIFF_EMULATED_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
SKIFF_EMULATED_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef SKIFF_EMULATED_ATOMIC

template <class T>
T atomicCAS(T* at, std::type_identity_t<T> compared, std::type_identity_t<T> value) {
  return skiff::cuda_emulation::Exchanged(at, [&](T old) { return old == compared ? value : old; });
}

inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  skiff::cuda_emulation::PassFence();
}
inline void __threadfence_system() { __threadfence(); }

// ---- loads and stores with a hint

#define SKIFF_EMULATED_LOAD(NAME) \
  template <class T>              \
  T NAME(const T* from) {         \
    return *from;                 \
  }
SKIFF_EMULATED_LOAD(__ldg)
SKIFF_EMULATED_LOAD(__ldcg)
SKIFF_EMULATED_LOAD(__ldca)
SKIFF_EMULATED_LOAD(__ldcs)
SKIFF_EMULATED_LOAD(__ldlu)
SKIFF_EMULATED_LOAD(__ldcv)
#undef SKIFF_EMULATED_LOAD

#define SKIFF_EMULATED_STORE(NAME)                  \
  template <class T>                                \
  void NAME(T* to, std::type_identity_t<T> value) { \
    *to = value;                                    \
  }
SKIFF_EMULATED_STORE(__stwb)
SKIFF_EMULATED_STORE(__stcg)
SKIFF_EMULATED_STORE(__stcs)
SKIFF_EMULATED_STORE(__stwt)
#undef SKIFF_EMULATED_STORE

// ---- arithmetic

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }

inline int __float_as_int(float x) {
  int bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __int_as_float(int bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
