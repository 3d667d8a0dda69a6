#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_memory_mover.h"
#include "operators/common/cuda/cuda_words.cuh"
#include "operators/common/half.h"
#include "operators/common/memory_mover.h"

namespace skiff {
namespace {

// As many as fit among the arguments of a kernel.
struct RunList {
  static constexpr int kCapacity = 128;

  MemoryRun runs[kCapacity];
};

// Run y of the grid is moved by its blocks x.
template <typename Word, bool kAdds>
__global__ void MoveRuns(RunList list) {
  const MemoryRun& run = list.runs[blockIdx.y];
  const auto* from = static_cast<const Word*>(run.from);
  auto* to = static_cast<Word*>(run.to);
  const int64_t words = run.bytes / static_cast<int64_t>(sizeof(Word));
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += stride) {
    if constexpr (kAdds) {
      using Wide = WideType<Word>;
      to[i] = static_cast<Word>(static_cast<Wide>(to[i]) + static_cast<Wide>(from[i]));
    } else {
      to[i] = from == nullptr ? Word{} : from[i];
    }
  }
}

class CudaMemoryMover final : public MemoryMover {
 public:
  void CopyBytes(const KernelContext& run, const void* source, void* target,
                 int64_t bytes) const override {
    CopyOnDevice(run, source, target, bytes);
  }
  void ZeroBytes(const KernelContext& run, void* target, int64_t bytes) const override {
    FillBytesOnDevice(run, target, 0, bytes);
  }

  void CopyRuns(const KernelContext& run, std::span<const MemoryRun> runs) const override {
    InBatches(runs, [&](const RunList& list, dim3 grid) {
      int64_t multiple = 0;
      for (const MemoryRun& one : std::span(list.runs).first(grid.y)) {
        multiple |= one.bytes | AddressOf(one.from) | AddressOf(one.to);
      }
      VisitWord(WordBytes({multiple}), [&]<typename Word>() {
        MoveRuns<Word, false><<<grid, kCudaThreads, 0, StreamOf(run)>>>(list);
      });
      CheckLaunch("copy of many runs");
    });
  }

  void AddRuns(const KernelContext& run, DType dtype,
               std::span<const MemoryRun> runs) const override {
    CheckCanBeAdded("a sum on a device", dtype);
    InBatches(runs, [&](const RunList& list, dim3 grid) {
      VisitDType<Float16, BFloat16, float, double>(dtype, "a sum on a device", [&]<typename T>(T) {
        MoveRuns<T, true><<<grid, kCudaThreads, 0, StreamOf(run)>>>(list);
      });
      CheckLaunch("sum of many runs");
    });
  }

 private:
  // Calls launch(list, grid) until all runs that have bytes are moved.
  template <typename Launch>
  static void InBatches(std::span<const MemoryRun> runs, const Launch& launch) {
    // A thread moves 16 bytes at most, and more than once where a grid isn't large enough.
    constexpr int64_t kBytesOfThread = 16;
    RunList list;
    unsigned count = 0;
    int64_t most = 0;
    const auto flush = [&] {
      if (count == 0) return;
      const int64_t threads = (most + kBytesOfThread - 1) / kBytesOfThread;
      launch(list, dim3(static_cast<unsigned>(CudaBlocksOfThreads(threads)), count));
      count = 0;
      most = 0;
    };
    for (const MemoryRun& run : runs) {
      if (run.bytes == 0) continue;
      list.runs[count++] = run;
      most = std::max(most, run.bytes);
      if (count == RunList::kCapacity) flush();
    }
    flush();
  }
};

}  // namespace

void AddMovingKernels(OpRegistry& registry, std::initializer_list<const char*> types) {
  static const CudaMemoryMover mover;
  SetMemoryMover(&mover);
  for (const char* type : types) {
    // A copy, since adding kernels moves those that there are.
    const std::vector<KernelDef> kernels = registry.Kernels(type);
    for (const KernelDef& kernel : kernels) {
      if (kernel.place != PlaceKind::kCpu) continue;
      registry.AddCudaKernel(type, kernel.dtype, kernel.prepare, kernel.accepts);
    }
  }
}

}  // namespace skiff
