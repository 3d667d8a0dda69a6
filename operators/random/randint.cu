// CUDA kernels of randint; randint.cc says how words make elements.
#include "operators/random/kernels/cuda_random.cuh"

namespace skiff {
namespace {

template <typename T>
struct Integer {
  static constexpr int kWords = 2;
  static constexpr int kElements = 1;

  // NumberBelow of random_tensor.h.
  __device__ void Set(const uint32_t* words, T* element) const {
    const uint64_t number = (words[0] * bound + (words[1] * bound >> 32)) >> 32;
    *element = static_cast<T>(low + static_cast<int64_t>(number));
  }

  int64_t low;
  uint64_t bound;  // high - low
};

template <typename T>
std::unique_ptr<Kernel> PrepareRandint(PrepareContext& context) {
  const int64_t low = context.IntAttr("low");
  const auto bound = static_cast<uint64_t>(context.IntAttr("high") - low);
  return MakeKernel([integer = Integer<T>{low, bound}, seed = context.IntAttr("seed"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    DrawOnDevice<T>(run, InitializerKey(seed, run), integer, &out.tensor(run));
  });
}

}  // namespace

void RegisterRandintCuda(OpRegistry& registry) {
  AddCudaRandomKernel<int32_t>(registry, "randint", PrepareRandint<int32_t>);
  AddCudaRandomKernel<int64_t>(registry, "randint", PrepareRandint<int64_t>);
}

}  // namespace skiff
