// CUDA kernels of masked_select_grad; masked_select.cc has the formula. masked_select itself makes
// rows by data, and stays on the CPU.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_numbering.cuh"
#include "operators/common/half.h"

namespace skiff {
namespace {

struct IsMasked {
  __device__ bool operator()(int64_t i) const { return mask[i]; }

  const bool* mask;
};

template <typename T>
struct SpreadGradient {
  __device__ void operator()(int64_t i, int64_t number, bool is_masked) const {
    to[i] = is_masked && number < count ? from[number] : T{0};
  }

  const T* from;
  int64_t count;
  T* to;
};

// Notes a fault unless Mask selects as many elements as Y@GRAD has.
__global__ void CheckSelected(const int64_t* selected, int64_t count, uint64_t* fault) {
  if (*selected != count) NoteFault(fault, 0, *selected);
}

template <typename T>
class MaskedSelectGrad final : public Kernel {
 public:
  explicit MaskedSelectGrad(PrepareContext& context)
      : mask_(context, "Mask"),
        y_grad_(context, "Y@GRAD"),
        x_grad_(context, "X@GRAD"),
        numbering_(context, context.Input("Mask").shape.element_count()) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    given_ = y_grad_.count(run);
    const int64_t* const selected =
        numbering_.Run(run, kWhat, mask_.count(run), IsMasked{mask_(run)},
                       SpreadGradient<T>{y_grad_(run), given_, x_grad_(run)});
    CheckSelected<<<1, 1, 0, StreamOf(run)>>>(selected, given_, run.fault);
    CheckLaunch(kWhat);
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kInvalidArgument, kWhat, ": Y@GRAD has ", given_,
          " elements, expected one for each that Mask selects, ", fault.value);
  }

 private:
  static constexpr const char* kWhat = "masked_select_grad";

  In<bool> mask_;
  In<T> y_grad_;
  Out<T> x_grad_;
  CudaNumbering numbering_;
  int64_t given_ = 0;  // elements of Y@GRAD
};

}  // namespace

void RegisterMaskedSelectCuda(OpRegistry& registry) {
  AddCudaKernels<Float16, BFloat16, float, double>(
      registry, "masked_select_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<MaskedSelectGrad<T>>(context);
      });
}

}  // namespace skiff
