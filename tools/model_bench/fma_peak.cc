#include "tools/model_bench/fma_peak.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "framework/base/cpu_features.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/model_bench/fma_peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Runs twelve independent chains of FMAs and returns the FLOP done. An FMA has a latency of four or
// five cycles, and processors start up to two per cycle, so ten chains or more keep them busy. The
// chains start from different numbers, since a compiler merges equal ones. `sink` receives a
// result, without which a compiler would drop the work.
double FmaChains(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f);
  const auto term = hn::Set(d, 0.001f);
  const auto start = [&](int chain) { return hn::Set(d, static_cast<float>(chain)); };
  auto a0 = start(0), a1 = start(1), a2 = start(2), a3 = start(3), a4 = start(4), a5 = start(5);
  auto a6 = start(6), a7 = start(7), a8 = start(8), a9 = start(9), a10 = start(10), a11 = start(11);
  for (int64_t i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    a4 = hn::MulAdd(a4, factor, term);
    a5 = hn::MulAdd(a5, factor, term);
    a6 = hn::MulAdd(a6, factor, term);
    a7 = hn::MulAdd(a7, factor, term);
    a8 = hn::MulAdd(a8, factor, term);
    a9 = hn::MulAdd(a9, factor, term);
    a10 = hn::MulAdd(a10, factor, term);
    a11 = hn::MulAdd(a11, factor, term);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)),
                           hn::Add(hn::Add(hn::Add(a4, a5), hn::Add(a6, a7)),
                                   hn::Add(hn::Add(a8, a9), hn::Add(a10, a11))));
  *sink = hn::GetLane(sum);
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(d));
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(FmaChains);

namespace {

constexpr int64_t kRounds = 500'000;

// Returns the best FLOP/s of chains(sink), which returns the FLOP done, on all threads at once.
template <typename Chains>
double BestRate(const Chains& chains) {
  using Clock = std::chrono::steady_clock;
  const int threads = omp_get_max_threads();
  // A cache line per thread.
  std::vector<float> sinks(static_cast<size_t>(threads) * 16);
  // The best run is the one least disturbed by other work; a peak has no other noise.
  double best = 0;
  for (int run = 0; run < 10; ++run) {
    double flop = 0;
    const Clock::time_point start = Clock::now();
#pragma omp parallel reduction(+ : flop)
    flop += chains(&sinks[static_cast<size_t>(omp_get_thread_num()) * 16]);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, flop / seconds);
  }
  return best;
}

#if defined(__x86_64__)

HWY_PUSH_ATTRIBUTES("avx512f,avx512bf16")

// Like FmaChains, with 24 chains: each step of one is two multiply-adds of a pair.
double Bf16Chains(float* sink) {
  constexpr int kChains = 24;
  const auto pairs = (__m512bh)_mm512_set1_epi32(0x3c003f00);
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kRounds / 2; ++round) {
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, pairs, pairs);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  *sink = _mm512_cvtss_f32(sums[0]);
  return static_cast<double>(kRounds / 2) * kChains * 2 * 32;
}

HWY_POP_ATTRIBUTES

#else

double Bf16Chains(float*) { return 0; }

#endif

}  // namespace

double MeasureFmaPeak() {
  return BestRate([](float* sink) { return HWY_DYNAMIC_DISPATCH(FmaChains)(kRounds, sink); });
}

double MeasureBf16Peak() { return UsesAvx512Bf16() ? BestRate(Bf16Chains) : 0; }

}  // namespace skiff
#endif  // HWY_ONCE
