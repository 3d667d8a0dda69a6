// The stream is the yardstick of update ops: the time of the stream divided by that of an op is the
// share of the memory bandwidth that the op reaches. So it has the vectors, threads and division of
// work of the update kernels, and only one fused multiply-add per updated element.
#include "tools/optimizer_bench/memory_stream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/optimizer_bench/memory_stream.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The a of x += a g: so small that the values stay about 1, and a power of two, so that tests can
// compare exactly.
constexpr float kFactor = 1.0f / (1 << 20);

constexpr size_t kMostArrays = 6;  // 2 reads and 4 updates

// The arrays come in the order of the class's comment: those that are only read, then those that
// are updated. The numbers of both are template arguments, so that the loops over them unroll.

template <int kReads, class D>
HWY_INLINE hn::Vec<D> ReadAt(D d, const std::array<float*, kMostArrays>& arrays, int64_t i) {
  const auto first = hn::LoadU(d, arrays[0] + i);
  if constexpr (kReads == 1) {
    return first;
  } else {
    return hn::Add(first, hn::LoadU(d, arrays[1] + i));
  }
}

template <int kReads, int kUpdates, class D>
HWY_INLINE void UpdateAt(D d, const std::array<float*, kMostArrays>& arrays, int64_t i) {
  const auto read = ReadAt<kReads>(d, arrays, i);
  const auto factor = hn::Set(d, kFactor);
  for (int k = kReads; k < kReads + kUpdates; ++k) {
    float* updated = arrays[static_cast<size_t>(k)] + i;
    hn::StoreU(hn::MulAdd(factor, read, hn::LoadU(d, updated)), d, updated);
  }
}

template <int kReads, int kUpdates>
void UpdateElements(const std::array<float*, kMostArrays>& arrays, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) UpdateAt<kReads, kUpdates>(d, arrays, i);
  for (; i < end; ++i) UpdateAt<kReads, kUpdates>(one, arrays, i);
}

// Four independent sums hide the latency of an addition.
template <int kReads>
float SumElements(const std::array<float*, kMostArrays>& arrays, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    s0 = hn::Add(s0, ReadAt<kReads>(d, arrays, i));
    s1 = hn::Add(s1, ReadAt<kReads>(d, arrays, i + lanes));
    s2 = hn::Add(s2, ReadAt<kReads>(d, arrays, i + 2 * lanes));
    s3 = hn::Add(s3, ReadAt<kReads>(d, arrays, i + 3 * lanes));
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < end; ++i) sum += hn::GetLane(ReadAt<kReads>(one, arrays, i));
  return sum;
}

template <int kReads>
float SweepElements(int updates, const std::array<float*, kMostArrays>& arrays, int64_t begin,
                    int64_t end) {
  if (updates == 0) return SumElements<kReads>(arrays, begin, end);
  if (updates == 1) UpdateElements<kReads, 1>(arrays, begin, end);
  if (updates == 2) UpdateElements<kReads, 2>(arrays, begin, end);
  if (updates == 3) UpdateElements<kReads, 3>(arrays, begin, end);
  if (updates == 4) UpdateElements<kReads, 4>(arrays, begin, end);
  return 0;
}

float RunSweep(const Sweep& sweep, const std::array<float*, kMostArrays>& arrays, int64_t begin,
               int64_t end) {
  return sweep.reads == 1 ? SweepElements<1>(sweep.updates, arrays, begin, end)
                          : SweepElements<2>(sweep.updates, arrays, begin, end);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(RunSweep);

// The grain of the kernels of update ops.
constexpr int64_t kGrain = 8192;

void CheckSweep(const Sweep& sweep) {
  SKIFF_ENFORCE(sweep.reads >= 1 && sweep.reads <= 2 && sweep.updates >= 0 && sweep.updates <= 4,
                kInvalidArgument, "a stream that reads ", sweep.reads, " arrays and updates ",
                sweep.updates, ": expected 1 or 2, and up to 4");
}

}  // namespace

int64_t BytesPerElement(const std::vector<Sweep>& sweeps) {
  int64_t accesses = 0;
  for (const Sweep& sweep : sweeps) accesses += sweep.reads + 2 * sweep.updates;
  return accesses * static_cast<int64_t>(sizeof(float));
}

int ArrayCount(const std::vector<Sweep>& sweeps) {
  int arrays = 0;
  for (const Sweep& sweep : sweeps) arrays = std::max(arrays, sweep.reads + sweep.updates);
  return arrays;
}

MemoryStream::MemoryStream(std::vector<Sweep> sweeps, int64_t elements)
    : sweeps_(std::move(sweeps)), elements_(elements) {
  std::ranges::for_each(sweeps_, CheckSweep);
  for (int i = 0; i < ArrayCount(sweeps_); ++i) {
    // Tensors, because their memory is on huge pages, as that of parameters is. Filled in parallel,
    // so that each thread's pages are on its NUMA node.
    float* array = tensors_.emplace_back(Shape{elements}, DType::kFloat32).data<float>();
    ParallelFor(elements, kGrain, [array](int64_t begin, int64_t end) {
      std::fill(array + begin, array + end, 1.0f);
    });
    arrays_.push_back(array);
  }
}

void MemoryStream::Run() {
  std::array<float*, HWY_NAMESPACE::kMostArrays> arrays{};
  std::ranges::copy(arrays_, arrays.begin());
  for (const Sweep& sweep : sweeps_) {
    // Sums leave the function, so that the compiler can't drop the loads of a sweep without
    // updates.
    std::atomic<double> sum = 0;
    ParallelFor(elements_, kGrain, [&](int64_t begin, int64_t end) {
      sum += static_cast<double>(HWY_DYNAMIC_DISPATCH(RunSweep)(sweep, arrays, begin, end));
    });
    sum_ += sum;
  }
}

}  // namespace skiff
#endif  // HWY_ONCE
