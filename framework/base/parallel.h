// Parallel loops for kernels, on OpenMP. An op uses no other threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace skiff {

// Splits [0, count) into contiguous parts of about equal length, one per thread, and calls
// body(begin, end) on each. Every part but the last is a multiple of `grain` long. If OpenMP
// provides fewer threads than requested, a thread takes several parts. Runs on the calling thread,
// without entering OpenMP, if count <= grain or if called inside a parallel region.
//
// The partition depends only on count, grain and the number of threads, so results repeat bit for
// bit. `body` must not throw.
template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t threads = std::min<int64_t>(grains, omp_get_max_threads());
  if (threads <= 1 || omp_in_parallel()) {
    body(int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    // OpenMP may provide fewer threads than requested (OMP_THREAD_LIMIT, OMP_DYNAMIC).
    for (int64_t part = omp_get_thread_num(); part < threads; part += omp_get_num_threads()) {
      const int64_t begin = grains * part / threads * grain;
      const int64_t end = std::min(count, grains * (part + 1) / threads * grain);
      if (begin < end) body(begin, end);
    }
  }
}

}  // namespace skiff
