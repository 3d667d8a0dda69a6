// CUDA kernels of addmm and addmm_grad; addmm.cc has the formulas.
#include <optional>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_gemm.h"
#include "operators/common/cuda/cuda_product_kernels.h"
#include "operators/math/kernels/addmm_sizes.h"

namespace skiff {
namespace {

AddmmSizes SizesOf(const OpContext& context) {
  return AddmmSizes::Of(context.Input("Input").shape, context.Input("X").shape,
                        context.Input("Y").shape);
}

// out = factor * input, broadcast. A stride of 0 repeats. `out` may be `input` if none is 0.
template <typename T>
struct ScaledBroadcast {
  __device__ void operator()(int64_t i) const {
    const CudaDivision at = Divide(i, columns);
    const T value = input[at.quotient * row_stride + at.rest * column_stride];
    out[i] = Rounded<T>(factor * Widened(value));
  }

  const T* input;
  int64_t row_stride;
  int64_t column_stride;
  WideType<T> factor;
  int64_t columns;
  T* out;
};

// out = factor * the sums of dOut over what Input repeats.
template <typename T>
struct ScaledSum {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry += static_cast<double>(Widened(dout[place]));
  }
  __device__ void Finish(int64_t output, Carry sum) const {
    out[output] = Rounded<T>(static_cast<WideType<T>>(static_cast<double>(factor) * sum));
  }

  const T* dout;
  T* out;
  WideType<T> factor;
};

// At least one of the two is repeated.
CudaFoldView RepeatedBy(const AddmmSizes& sizes) {
  AxisFlags summed{};
  summed[0] = sizes.repeats_rows;
  summed[1] = sizes.repeats_columns;
  return CudaFoldView({sizes.m, sizes.n}, summed);
}

template <typename T>
void Scale(const KernelContext& run, const AddmmSizes& sizes, bool broadcasts, const T* input,
           WideType<T> factor, T* out) {
  const int64_t columns = broadcasts && sizes.repeats_columns ? 1 : sizes.n;
  ForEachOnDevice(
      run, "addmm", sizes.m * sizes.n,
      ScaledBroadcast<T>{input, broadcasts && sizes.repeats_rows ? 0 : columns,
                         broadcasts && sizes.repeats_columns ? 0 : 1, factor, sizes.n, out});
}

template <typename T>
std::unique_ptr<Kernel> PrepareAddmm(PrepareContext& context) {
  const auto beta = static_cast<double>(context.Attr<float>("Beta"));
  // Input is copied to Out first, broadcast, and the product scales it, so that half is rounded
  // once. With Beta = 0, the product overwrites Out: NaN in Input or in Out doesn't matter.
  const auto product_of =
      [beta, alpha = static_cast<double>(context.Attr<float>("Alpha"))](const AddmmSizes& sizes) {
        return GemmSpec{.m = sizes.m, .n = sizes.n, .k = sizes.k, .alpha = alpha, .beta = beta};
      };
  CudaGemm<T> gemm(product_of(SizesOf(context)), context);
  const In<T> input(context, "Input");
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const Out<T> output(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    const AddmmSizes sizes = AddmmSizes::Of(input.shape(run), x.shape(run), y.shape(run));
    T* out = output(run);
    // In place, it is there, and isn't broadcast.
    if (beta != 0 && input(run) != out) Scale<T>(run, sizes, true, input(run), 1, out);
    gemm.Run(run, product_of(sizes), x(run), y(run), out);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareAddmmGrad(PrepareContext& context) {
  const AddmmSizes prepared = SizesOf(context);
  const double alpha = static_cast<double>(context.Attr<float>("Alpha"));
  const WideType<T> beta = context.Attr<float>("Beta");
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dinput(context, "Input@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  const auto of_x = [alpha](const AddmmSizes& sizes) {
    return GemmSpec{.m = sizes.m, .n = sizes.k, .k = sizes.n, .trans_b = true, .alpha = alpha};
  };
  const auto of_y = [alpha](const AddmmSizes& sizes) {
    return GemmSpec{.m = sizes.k, .n = sizes.n, .k = sizes.m, .trans_a = true, .alpha = alpha};
  };
  std::optional<CudaGemm<T>> to_x;
  std::optional<CudaGemm<T>> to_y;
  if (dx.is_there()) to_x.emplace(of_x(prepared), context);
  if (dy.is_there()) to_y.emplace(of_y(prepared), context);
  const bool sums = dinput.is_there() && (prepared.repeats_rows || prepared.repeats_columns);
  const CudaFold<ScaledSum<T>> fold(context, sums ? prepared.m * prepared.n : 0);
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    const Shape& left = x.shape(run);
    // Without a gradient of Input, its shape doesn't matter.
    const AddmmSizes sizes =
        AddmmSizes::Of(dinput.is_there() ? dinput.shape(run) : left, left, y.shape(run));
    const T* dout = gradient(run);
    if (to_x) to_x->Run(run, of_x(sizes), dout, y(run), dx(run));
    if (to_y) to_y->Run(run, of_y(sizes), x(run), dout, dy(run));
    if (!dinput.is_there()) return;
    T* out = dinput(run);
    if (!sizes.repeats_rows && !sizes.repeats_columns) {
      Scale<T>(run, sizes, false, dout, beta, out);
    } else {
      fold.Run(run, "addmm_grad", RepeatedBy(sizes), {dout, out, beta});
    }
  });
}

}  // namespace

void RegisterAddmmCuda(OpRegistry& registry) {
  AddCudaProductKernels(registry, "addmm", [=]<typename T>(PrepareContext& context) {
    return PrepareAddmm<T>(context);
  });
  AddCudaProductKernels(registry, "addmm_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareAddmmGrad<T>(context);
  });
}

}  // namespace skiff
