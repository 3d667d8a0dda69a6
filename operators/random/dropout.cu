// CUDA kernels of dropout and dropout_grad; dropout.cc has the formulas.
#include <cstdint>

#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/dropout_settings.h"
#include "operators/random/kernels/cuda_random.cuh"

namespace skiff {
namespace {

template <typename T>
struct Dropout {
  const T* x;
  T* out;         // may be `x`
  uint8_t* mask;  // nullptr: nobody reads it
  int64_t count;
  WideType<T> scale;
  uint32_t threshold;
  bool draws;
  bool keeps;  // unless it draws: whether it keeps all or drops all
  bool is_aligned;
};

// The key of a run. A Seed tensor with a value other than 0 goes before the others.
struct DropoutKey {
  RandomKey key;
  const void* seed;  // Seed, of one element; nullptr: there is none
  bool seed_is_int32;

  __device__ DevicePhilox Philox() const {
    if (seed == nullptr) return DevicePhilox(key);
    const int64_t given =
        seed_is_int32 ? *static_cast<const int32_t*>(seed) : *static_cast<const int64_t*>(seed);
    if (given == 0) return DevicePhilox(key);
    return DevicePhilox({static_cast<uint64_t>(given), 0, StepOf(key)});
  }
};

// A thread takes the elements of whole blocks, of four words each.
template <typename T>
inline constexpr int kDropoutSize = kVectorSize<T> < 4 ? 4 : kVectorSize<T>;

template <typename T>
__global__ void __launch_bounds__(kCudaThreads) Drop(Dropout<T> of, DropoutKey key) {
  constexpr int kSize = kDropoutSize<T>;
  const DevicePhilox philox = key.Philox();
  ForEachVector<kSize>(of.count, of.is_aligned, [&](int64_t i, int length, bool is_whole) {
    CudaVector<uint8_t, kSize> mask;
#pragma unroll
    for (int j = 0; j < kSize; j += 4) {
      DevicePhilox::Block block{};
      if (of.draws) block = philox.At(static_cast<uint64_t>((i + j) / 4));
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        mask.values[j + k] = of.draws ? block.words[k] >= of.threshold : of.keeps;
      }
    }
    auto values = LoadWide<kSize>(of.x + i, length, is_whole);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      values.values[j] = mask.values[j] != 0 ? values.values[j] * of.scale : WideType<T>{0};
    }
    StoreRounded(values, length, is_whole, of.out + i);
    if (of.mask != nullptr) StoreVector(mask, length, is_whole, of.mask + i);
  });
}

// `mask`: nullptr keeps all.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    MaskedScale(const uint8_t* mask, const T* dout, WideType<T> scale, T* dx, int64_t count,
                bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    auto values = LoadWide<kSize>(dout + i, length, is_whole);
    CudaVector<uint8_t, kSize> kept;
#pragma unroll
    for (int j = 0; j < kSize; ++j) kept.values[j] = 1;
    if (mask != nullptr) kept = LoadVector<kSize>(mask + i, length, is_whole);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      values.values[j] = kept.values[j] != 0 ? values.values[j] * scale : WideType<T>{0};
    }
    StoreRounded(values, length, is_whole, dx + i);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareDropout(PrepareContext& context) {
  return MakeRowsKernel([settings = DropoutSettingsOf(context), x = In<T>(context, "X"),
                         seed = In<>(context, "Seed"), out = Out<T>(context, "Out"),
                         mask = Out<uint8_t>(context, "Mask")](const KernelContext& run) {
    Dropout<T> of{.x = x(run),
                  .out = out(run),
                  .mask = mask(run),
                  .count = x.count(run),
                  .scale = static_cast<WideType<T>>(settings.scale()),
                  .threshold = settings.threshold(),
                  .draws = settings.draws(),
                  .keeps = !settings.drops_all()};
    if (of.count == 0) return;
    of.is_aligned =
        IsAlignedTo(of.x, 16) && IsAlignedTo(of.out, 16) && IsAlignedTo(of.mask, kDropoutSize<T>);
    DropoutKey key{.key = settings.KeyOf(run)};
    if (seed.is_there()) {
      key.seed = seed(run);
      key.seed_is_int32 = seed.tensor(run).dtype() == DType::kInt32;
    }
    const CudaGrid grid = GridOf(run, (of.count + kDropoutSize<T> - 1) / kDropoutSize<T>);
    Drop<T><<<grid.blocks, kCudaThreads, 0, StreamOf(run)>>>(of, key);
    CheckLaunch("dropout");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareDropoutGrad(PrepareContext& context) {
  const DropoutSettings settings = DropoutSettingsOf(context);
  const In<uint8_t> mask = settings.is_test ? In<uint8_t>() : In<uint8_t>(context, "Mask");
  return MakeRowsKernel([mask, scale = static_cast<WideType<T>>(settings.scale()),
                         from = In<T>(context, "Out@GRAD"),
                         to = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    if (!to.is_there()) return;
    const uint8_t* kept = mask(run);
    const int64_t count = from.count(run);
    if (count == 0) return;
    const CudaGrid grid = GridOfVectors(run, count, sizeof(T));
    MaskedScale<T><<<grid.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        kept, from(run), scale, to(run), count,
        IsAlignedTo(kept, kVectorSize<T>) && IsAlignedTo(from(run), 16) &&
            IsAlignedTo(to(run), 16));
    CheckLaunch("dropout_grad");
  });
}

}  // namespace

void RegisterDropoutCuda(OpRegistry& registry) {
  const auto add = [&]<typename... Ts>() {
    (AddCudaRandomKernel<Ts>(registry, "dropout", PrepareDropout<Ts>), ...);
    (AddCudaRandomKernel<Ts>(registry, "dropout_grad", PrepareDropoutGrad<Ts>), ...);
  };
  add.template operator()<float, double, BFloat16, Float16>();
}

}  // namespace skiff
