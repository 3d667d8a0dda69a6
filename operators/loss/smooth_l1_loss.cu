// CUDA kernels of smooth_l1_loss and its gradient; smooth_l1_loss.cc has the formulas.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/element_formula.h"

namespace skiff {
namespace {

#include "operators/loss/kernels/smooth_l1_loss_formula-inl.h"

// The losses of rows. The differences may be X or Y.
template <typename T>
struct SmoothLosses {
  // So that long rows don't lose small terms.
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    const auto [d, loss] =
        formula(arrays.At(0, i), arrays.At(1, i), arrays.At(2, i), arrays.At(3, i));
    arrays.outputs[0][i] = d;
    *carry += static_cast<double>(loss);
  }
  __device__ void Finish(int64_t row, Carry sum) const {
    arrays.outputs[1][row] = static_cast<T>(sum);
  }

  SmoothL1LossFormula formula;
  ElementArrays<T> arrays;
};

// Either gradient may be Diff, or nullptr.
template <typename T>
struct SmoothGradients {
  __device__ void operator()(int64_t i) const {
    const auto [dx, dy] = formula(arrays.At(0, i), arrays.At(1, i), arrays.At(2, i),
                                  dlosses[Divide(i, length).quotient]);
    if (arrays.outputs[0] != nullptr) arrays.outputs[0][i] = dx;
    if (arrays.outputs[1] != nullptr) arrays.outputs[1][i] = dy;
  }

  SmoothL1LossGradFormula formula;
  ElementArrays<T> arrays;
  const T* dlosses;
  int64_t length;  // of a row
};

template <typename T>
std::unique_ptr<Kernel> PrepareSmoothL1Loss(PrepareContext& context) {
  const CudaFold<SmoothLosses<T>> fold(context, context.Input("X").shape.element_count());
  const SmoothL1LossFormula formula(context);
  const FormulaArguments<SmoothL1LossFormula, T> arguments(context);
  const In<T> x(context, "X");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = x.shape(run);
    AxisFlags all_but_rows{};
    std::fill_n(all_but_rows.begin() + 1, shape.rank() - 1, true);
    fold.Run(run, "smooth_l1_loss", CudaFoldView(shape, all_but_rows), {formula, arguments(run)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSmoothL1LossGrad(PrepareContext& context) {
  const SmoothL1LossGradFormula formula(context);
  const FormulaArguments<SmoothL1LossGradFormula, T> arguments(context);
  const In<T> diff(context, "Diff");
  const In<T> dout(context, "Out@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = diff.shape(run);
    ForEachOnDevice(run, "smooth_l1_loss_grad", shape.element_count(),
                    SmoothGradients<T>{formula, arguments(run), dout(run),
                                       shape.element_count(1, shape.rank())});
  });
}

}  // namespace

void RegisterSmoothL1LossCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "smooth_l1_loss",
      [=]<typename T>(PrepareContext& context) { return PrepareSmoothL1Loss<T>(context); });
  AddCudaKernels<float, double>(
      registry, "smooth_l1_loss_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareSmoothL1LossGrad<T>(context); });
}

}  // namespace skiff
