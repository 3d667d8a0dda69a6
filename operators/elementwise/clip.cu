// CUDA kernels of clip and clip_grad; clip.cc has the formulas.
#include <memory>

#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_sorted_rows.cuh"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

#include "operators/elementwise/kernels/clip_formula-inl.h"

// min and max: numbers, or tensors of one.
template <typename T>
struct Bounds {
  explicit Bounds(const CudaUnaryLaunch& launch)
      : min(launch.numbers[0]),
        max(launch.numbers[1]),
        given_min(static_cast<const T*>(launch.tensors[0])),
        given_max(static_cast<const T*>(launch.tensors[1])) {}
  Bounds(float low, float high, const T* low_tensor, const T* high_tensor)
      : min(low), max(high), given_min(low_tensor), given_max(high_tensor) {}

  __device__ T low() const { return given_min == nullptr ? static_cast<T>(min) : *given_min; }
  __device__ T high() const { return given_max == nullptr ? static_cast<T>(max) : *given_max; }

  float min;
  float max;
  const T* given_min;
  const T* given_max;
};

template <typename T>
struct Clip {
  __device__ T Value(T x) const { return Clipped(x, bounds.low(), bounds.high()); }

  Bounds<T> bounds;
};

template <typename T>
struct ClipGrad {
  __device__ T Gradient(T x, T dout) const {
    return ClippedGradient(x, dout, bounds.low(), bounds.high());
  }

  Bounds<T> bounds;
};

[[noreturn]] void ThrowBadBounds(float min, float max) {
  Throw(ErrorCode::kInvalidArgument, "clip: min = ", min, " and max = ", max,
        ", expected min <= max");
}

// A fault holds the bits of both bounds as floats: min's are the position, max's the value.
// keeps_zero: zeros, which are missing from selected rows, must stay zeros.
template <typename T>
__global__ void CheckBounds(Bounds<T> bounds, bool keeps_zero, uint64_t* fault) {
  const bool has_zero = bounds.low() <= 0 && bounds.high() >= 0;
  if (bounds.low() <= bounds.high() && (has_zero || !keeps_zero)) return;
  constexpr uint32_t kNotANumber = 0x7FC00000;
  const auto min = static_cast<float>(bounds.low());
  const auto max = static_cast<float>(bounds.high());
  NoteFault(fault, min == min ? std::bit_cast<uint32_t>(min) : kNotANumber,
            std::bit_cast<int32_t>(max));
}

float MinOf(const DataFault& fault) {
  return std::bit_cast<float>(static_cast<uint32_t>(fault.position));
}

float MaxOf(const DataFault& fault) {
  return std::bit_cast<float>(static_cast<int32_t>(fault.value));
}

void ThrowClipFault(const DataFault& fault) { ThrowBadBounds(MinOf(fault), MaxOf(fault)); }

template <typename T>
const char* LaunchClip(const CudaUnaryLaunch& launch) {
  using Wide = WideType<T>;
  const Bounds<Wide> bounds(launch);
  if (bounds.given_min != nullptr || bounds.given_max != nullptr) {
    CheckBounds<Wide><<<1, 1, 0, static_cast<cudaStream_t>(launch.grid.stream)>>>(
        bounds, /*keeps_zero=*/false, launch.fault);
  } else if (!(bounds.min <= bounds.max)) {
    ThrowBadBounds(bounds.min, bounds.max);
  }
  return cuda_unary::LaunchApply<T>(launch, Clip<Wide>{bounds});
}

template <typename T>
const char* LaunchClipGrad(const CudaUnaryLaunch& launch) {
  using Wide = WideType<T>;
  return cuda_unary::LaunchApplyGradient<T>(launch, ClipGrad<Wide>{Bounds<Wide>(launch)});
}

// Marks all slots as unused but the first one of each row.
struct KeepFirstSlots {
  __device__ void operator()(int64_t k) const {
    rows[sorted.positions[k]] = IsFirstOfRow(sorted, k) ? sorted.rows[k] : int64_t{-1};
  }

  SortedRows sorted;
  int64_t* rows;
};

template <typename T>
struct ClipUsedSlots {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    if (rows[Divide(i, width).quotient] < 0) return;
    CudaValues<T, kCount> clipped = LoadValues<kCount>(values + i, is_aligned);
#pragma unroll
    for (int k = 0; k < kCount; ++k) clipped.at[k] = clip.Value(clipped.at[k]);
    StoreValues(clipped, is_aligned, values + i);
  }

  Clip<T> clip;
  const int64_t* rows;
  int64_t width;
  T* values;
  bool is_aligned;
};

// Also runs in place: the sum of a row goes to its first slot.
template <typename T>
class ClipRowsKernel final : public Kernel {
 public:
  explicit ClipRowsKernel(PrepareContext& context)
      : x_(context, "X"),
        min_tensor_(context, "Min"),
        max_tensor_(context, "Max"),
        out_(context, "Out"),
        min_(context.Attr<float>("min")),
        max_(context.Attr<float>("max")),
        merged_(context, context.Input("X")) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Tensor& x = x_.tensor(run);
    Tensor& out = out_.tensor(run);
    const Bounds<T> bounds(min_, max_, min_tensor_(run), max_tensor_(run));
    if (HasTensors()) {
      CheckBounds<T><<<1, 1, 0, StreamOf(run)>>>(bounds, /*keeps_zero=*/true, run.fault);
      CheckLaunch("clip");
    }
    const SortedRows sorted = merged_.Sort(run, x);
    const int64_t width = RowWidth(x.shape());
    merged_.SetAtFirst(run, sorted, width, x.data<T>(), out.data<T>());
    ForEachOnDevice(run, "clip", sorted.count, KeepFirstSlots{sorted, out.rows().data()});
    T* const values = out.data<T>();
    ForEachPackOnDevice<T>(run, "clip", out.element_count(), width,
                           ClipUsedSlots<T>{Clip<T>{bounds}, out.rows().data(), width, values,
                                            ArePacksAligned(values)});
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    if (!(MinOf(fault) <= MaxOf(fault))) ThrowClipFault(fault);
    Throw(ErrorCode::kInvalidArgument, "clip: X is selected rows, min = ", MinOf(fault),
          " and max = ", MaxOf(fault), ", expected min <= 0 <= max: the other rows are zeros");
  }

 private:
  bool HasTensors() const { return min_tensor_.is_there() || max_tensor_.is_there(); }

  In<T> x_;
  In<T> min_tensor_;
  In<T> max_tensor_;
  Out<T> out_;
  float min_;
  float max_;
  CudaMergedRows<T> merged_;
};

}  // namespace

void RegisterClipCuda(OpRegistry& registry) {
  const CudaUnaryFacts facts{
      .op = {.type = "clip", .grad_reads = "X", .numbers = {{{.name = "min"}, {.name = "max"}}}},
      .tensors = {"Min", "Max"},
      .throw_fault = ThrowClipFault};
  AddCudaUnaryKernel(registry, facts, DType::kFloat32, LaunchClip<float>);
  AddCudaUnaryKernel(registry, facts, DType::kFloat64, LaunchClip<double>);
  AddCudaUnaryKernel(registry, facts, DType::kBFloat16, LaunchClip<BFloat16>);
  AddCudaUnaryKernel(registry, facts, DType::kFloat16, LaunchClip<Float16>);
  registry.AddSelectedRowsKernels<float, double>(
      "clip",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<ClipRowsKernel<T>>(context);
      },
      PlaceKind::kCuda);
  AddCudaUnaryGradKernel(registry, facts, DType::kFloat32, LaunchClipGrad<float>);
  AddCudaUnaryGradKernel(registry, facts, DType::kFloat64, LaunchClipGrad<double>);
  AddCudaUnaryGradKernel(registry, facts, DType::kBFloat16, LaunchClipGrad<BFloat16>);
  AddCudaUnaryGradKernel(registry, facts, DType::kFloat16, LaunchClipGrad<Float16>);
}

}  // namespace skiff
