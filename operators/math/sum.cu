// CUDA kernels of sum, of dense tensors.
#include <algorithm>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda_grid.h"
#include "operators/common/cuda_integer.cuh"
#include "operators/common/cuda_vector_loop.cuh"
#include "operators/common/cuda_vectors.cuh"

namespace skiff {
namespace {

// As many inputs as one launch adds. Of more inputs, a workspace has the sum so far.
constexpr int kMaxTerms = 32;

template <typename T>
struct Terms {
  const T* data[kMaxTerms];
  int count;
};

// Each thread reads a vector of all terms before it writes, so the output may be one of them.
template <typename T>
__global__ void __launch_bounds__(kGridThreads)
    AddTerms(Terms<T> terms, T* out, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    CudaVector<T, kSize> sum = LoadVector<kSize>(terms.data[0] + i, length, is_whole);
    for (int k = 1; k < terms.count; ++k) {
      const CudaVector<T, kSize> term = LoadVector<kSize>(terms.data[k] + i, length, is_whole);
#pragma unroll
      for (int j = 0; j < kSize; ++j) sum.values[j] = DeviceAdd(sum.values[j], term.values[j]);
    }
    StoreVector(sum, length, is_whole, out + i);
  });
}

template <typename T>
class SumKernel final : public Kernel {
 public:
  explicit SumKernel(PrepareContext& context) : out_(context.OutputIndex("Out")) {
    for (size_t i = 0; i < context.InputCount("X"); ++i) {
      inputs_.push_back(context.InputIndex("X", i));
    }
    if (inputs_.size() <= kMaxTerms) return;
    const int64_t count = context.Output("Out").shape.element_count();
    so_far_ = context.RequestWorkspace(count * static_cast<int64_t>(sizeof(T)));
  }

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    Tensor& out = run.output(out_);
    const int64_t count = out.element_count();
    if (count == 0) return;
    const CudaGrid grid = GridOfVectors(run, count, sizeof(T));
    size_t added = 0;
    while (added < inputs_.size()) {
      Terms<T> terms{};
      if (added > 0) terms.data[terms.count++] = static_cast<const T*>(run.workspace(so_far_));
      while (added < inputs_.size() && terms.count < kMaxTerms) {
        terms.data[terms.count++] = run.input(inputs_[added++]).template data<T>();
      }
      T* to = added == inputs_.size() ? out.data<T>() : static_cast<T*>(run.workspace(so_far_));
      const bool is_aligned =
          IsAlignedTo(to, 16) && std::all_of(terms.data, terms.data + terms.count,
                                             [](const T* term) { return IsAlignedTo(term, 16); });
      AddTerms<T><<<grid.blocks, kGridThreads, 0, static_cast<cudaStream_t>(grid.stream)>>>(
          terms, to, count, is_aligned);
    }
    const char* failure = LaunchFailure();
    SKIFF_ENFORCE(failure == nullptr, kIo, "sum: launch failed: ", failure);
  }

 private:
  std::vector<int> inputs_;
  int out_;
  int so_far_ = -1;
};

template <typename T>
void AddSumKernel(OpRegistry& registry) {
  registry.AddKernel("sum", {.name = "cuda",
                             .place = PlaceKind::kCuda,
                             .dtype = kDTypeOf<T>,
                             .prepare = [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                               return std::make_unique<SumKernel<T>>(context);
                             },
                             .accepts = {}});
}

}  // namespace

void RegisterSumCuda(OpRegistry& registry) {
  AddSumKernel<float>(registry);
  AddSumKernel<double>(registry);
  AddSumKernel<int32_t>(registry);
  AddSumKernel<int64_t>(registry);
}

}  // namespace skiff
