// Sets OpenMP's number of threads for a scope.
#pragma once

#include <omp.h>

namespace skiff::harness {

// Sets the number of threads; the destructor restores it.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace skiff::harness
