// CUDA kernels of sum: of dense tensors, of selected rows, and of both.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_grid.h"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/common/integer.h"
#include "operators/common/wide_float32.h"

namespace skiff {
namespace {

// As many inputs as one launch adds. Of more inputs, a workspace has the sum so far, which isn't
// rounded to half.
constexpr int kMaxTerms = 32;

template <typename T>
struct Terms {
  const T* data[kMaxTerms];
  int count;
  const WideType<T>* so_far;  // nullptr: these are the first
};

// Each thread reads a vector of all terms before it writes, so the output may be one of them.
template <bool kIsWide, typename T, typename To>
__global__ void __launch_bounds__(kCudaThreads)
    AddTerms(Terms<T> terms, To* out, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    auto sum = terms.so_far == nullptr ? LoadWide<kSize>(terms.data[0] + i, length, is_whole)
                                       : LoadWide<kSize>(terms.so_far + i, length, is_whole);
    for (int k = terms.so_far == nullptr ? 1 : 0; k < terms.count; ++k) {
      const auto term = LoadWide<kSize>(terms.data[k] + i, length, is_whole);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        sum.values[j] = WrappingAdd(sum.values[j], term.values[j]);
        if constexpr (kIsWide) sum.values[j] = NearestFloat32(sum.values[j]);
      }
    }
    StoreRounded(sum, length, is_whole, out + i);
  });
}

template <typename T>
class SumKernel final : public Kernel {
 public:
  // Of these inputs, at least one.
  SumKernel(PrepareContext& context, std::vector<int> inputs)
      : inputs_(std::move(inputs)), out_(context, "Out"), is_wide_(IsWideFloat32(context)) {
    if (inputs_.size() <= kMaxTerms) return;
    const int64_t count = context.Output("Out").shape.element_count();
    so_far_ = context.RequestWorkspace(count * static_cast<int64_t>(sizeof(WideType<T>)));
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    Tensor& out = out_.tensor(run);
    const int64_t count = out.element_count();
    if (count == 0) return;
    const CudaGrid grid = GridOfVectors(run, count, sizeof(T));
    size_t added = 0;
    while (added < inputs_.size()) {
      Terms<T> terms{};
      auto* const so_far =
          so_far_ < 0 ? nullptr : static_cast<WideType<T>*>(run.workspace(so_far_));
      if (added > 0) terms.so_far = so_far;
      while (added < inputs_.size() && terms.count < kMaxTerms) {
        terms.data[terms.count++] = run.input(inputs_[added++]).template data<T>();
      }
      const bool is_aligned = IsAlignedTo(so_far, 16) && IsAlignedTo(out.raw_data(), 16) &&
                              std::all_of(terms.data, terms.data + terms.count,
                                          [](const T* term) { return IsAlignedTo(term, 16); });
      if (added == inputs_.size()) {
        Launch(grid, terms, out.data<T>(), count, is_aligned);
      } else {
        Launch(grid, terms, so_far, count, is_aligned);
      }
    }
    const char* failure = LaunchFailure();
    SKIFF_ENFORCE(failure == nullptr, kIo, "sum: launch failed: ", failure);
  }

 private:
  template <typename To>
  void Launch(const CudaGrid& grid, const Terms<T>& terms, To* to, int64_t count,
              bool is_aligned) const {
    const auto stream = static_cast<cudaStream_t>(grid.stream);
    if constexpr (std::is_same_v<T, double>) {
      if (is_wide_) {
        AddTerms<true><<<grid.blocks, kCudaThreads, 0, stream>>>(terms, to, count, is_aligned);
        return;
      }
    }
    AddTerms<false><<<grid.blocks, kCudaThreads, 0, stream>>>(terms, to, count, is_aligned);
  }

  std::vector<int> inputs_;
  Out<> out_;
  bool is_wide_;
  int so_far_ = -1;
};

// Returns the inputs that are selected rows, or those that aren't.
std::vector<int> InputsThat(const OpContext& context, bool are_selected_rows) {
  std::vector<int> inputs;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    if (context.Input("X", i).is_selected_rows() != are_selected_rows) continue;
    inputs.push_back(context.InputIndex("X", i));
  }
  return inputs;
}

// All inputs are selected rows. Out may be one of them if all others are empty.
void ConcatenateRows(const KernelContext& run, const std::vector<int>& inputs, Tensor* out) {
  auto* values = static_cast<char*>(out->raw_data());
  int64_t* rows = out->rows().data();
  for (const int input : inputs) {
    const Tensor& x = run.input(input);
    const int64_t slots = x.shape()[0];
    if (slots == 0) continue;
    const int64_t bytes = x.element_count() * SizeOf(x.dtype());
    CopyOnDevice(run, x.raw_data(), values, bytes);
    CopyOnDevice(run, x.rows().data(), rows, slots * static_cast<int64_t>(sizeof(int64_t)));
    values += bytes;
    rows += slots;
  }
}

// The sum of the dense inputs, to which those of selected rows are added.
template <typename T>
std::unique_ptr<Kernel> PrepareSumOfRows(PrepareContext& context) {
  const std::vector<int> dense = InputsThat(context, /*are_selected_rows=*/false);
  const std::vector<int> selected = InputsThat(context, /*are_selected_rows=*/true);
  const Out<T> out(context, "Out");
  if (dense.empty()) {
    return MakeRowsKernel(
        [=](const KernelContext& run) { ConcatenateRows(run, selected, &out.tensor(run)); });
  }
  std::vector<CudaMergedRows<T>> merged;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const TensorMeta& x = context.Input("X", i);
    if (x.is_selected_rows()) merged.emplace_back(context, x);
  }
  return MakeRowsKernel(
      [=, of_dense = std::make_shared<SumKernel<T>>(context, dense)](const KernelContext& run) {
        of_dense->Run(run);
        for (size_t i = 0; i < selected.size(); ++i) {
          const Tensor& rows = run.input(selected[i]);
          merged[i].AddTo(run, rows, rows.data<T>(), out(run));
        }
      });
}

}  // namespace

void RegisterSumCuda(OpRegistry& registry) {
  AddCudaKernels<float, double, BFloat16, Float16, int32_t, int64_t>(
      registry, "sum", [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<SumKernel<T>>(context, InputsThat(context, false));
      });
  registry.AddSelectedRowsKernels<float, double>(
      "sum", [=]<typename T>(PrepareContext& context) { return PrepareSumOfRows<T>(context); },
      PlaceKind::kCuda);
}

}  // namespace skiff
