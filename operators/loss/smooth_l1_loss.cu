// CUDA kernels of smooth_l1_loss and its gradient; smooth_l1_loss.cc has the formulas.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"
#include "operators/loss/kernels/smooth_l1_loss_formula.h"

namespace skiff {
namespace {

// The losses of rows. The differences may be X or Y.
template <typename T>
struct SmoothLosses {
  // So that long rows don't lose small terms.
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    const T d = elements.Difference(x[i], y[i], i);
    diffs[i] = d;
    *carry += static_cast<double>(elements.Loss(d, i));
  }
  __device__ void Finish(int64_t row, Carry sum) const { losses[row] = static_cast<T>(sum); }

  SmoothL1Elements<T> elements;
  const T* x;
  const T* y;
  T* diffs;
  T* losses;
};

// Either gradient may be Diff, or nullptr.
template <typename T>
struct SmoothGradients {
  __device__ void operator()(int64_t i) const {
    const T slope = elements.Slope(dlosses[Divide(i, length).quotient], diffs[i], i);
    if (dx != nullptr) dx[i] = slope;
    if (dy != nullptr) dy[i] = -slope;
  }

  SmoothL1Elements<T> elements;
  const T* diffs;
  const T* dlosses;
  int64_t length;  // of a row
  T* dx;
  T* dy;
};

template <typename T>
std::unique_ptr<Kernel> PrepareSmoothL1Loss(PrepareContext& context) {
  const CudaFold<SmoothLosses<T>> fold(context, context.Input("X").shape.element_count());
  const SmoothL1Settings<T> settings(context);
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const Out<T> diff(context, "Diff");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = x.shape(run);
    AxisFlags all_but_rows{};
    std::fill_n(all_but_rows.begin() + 1, shape.rank() - 1, true);
    fold.Run(run, "smooth_l1_loss", CudaFoldView(shape, all_but_rows),
             {settings(run), x(run), y(run), diff(run), out(run)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSmoothL1LossGrad(PrepareContext& context) {
  const SmoothL1Settings<T> settings(context);
  const In<T> diff(context, "Diff");
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = diff.shape(run);
    ForEachOnDevice(run, "smooth_l1_loss_grad", shape.element_count(),
                    SmoothGradients<T>{.elements = settings(run),
                                       .diffs = diff(run),
                                       .dlosses = dout(run),
                                       .length = shape.element_count(1, shape.rank()),
                                       .dx = dx(run),
                                       .dy = dy(run)});
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
