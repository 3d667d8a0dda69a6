// Parallel loops of kernels, on OpenMP: the only threading inside an op.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace skiff {

// Calls body(begin, end) on equal, contiguous parts of [0, count), one a thread (several where
// OpenMP gives fewer threads), with every part but the last a multiple of `grain`. With one part's
// worth of work (count <= grain), or inside another parallel region, it runs on the calling thread
// without entering OpenMP. The partition depends only on count, grain and the number of threads, so
// results repeat bit for bit. `body` must not throw.
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
    // OpenMP may give fewer threads than asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC).
    for (int64_t part = omp_get_thread_num(); part < threads; part += omp_get_num_threads()) {
      const int64_t begin = grains * part / threads * grain;
      const int64_t end = std::min(count, grains * (part + 1) / threads * grain);
      if (begin < end) body(begin, end);
    }
  }
}

}  // namespace skiff
