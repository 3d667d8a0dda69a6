// CUDA kernels of smooth_l1_loss and its gradient; smooth_l1_loss.cc has the formulas.
#include <cmath>
#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"

namespace skiff {
namespace {

// The curve s.
template <typename T>
struct Curve {
  explicit Curve(const OpContext& context) {
    const T sigma = static_cast<T>(context.Attr<float>("sigma"));
    square = sigma * sigma;
    bend = T{1} / square;
  }
  __device__ T Value(T d) const {
    const T size = std::abs(d);
    return size < bend ? T{0.5} * square * d * d : size - T{0.5} * bend;
  }
  __device__ T Slope(T d) const {
    const T outside = d < T{0} ? T{-1} : T{1};
    return std::abs(d) < bend ? square * d : outside;
  }
  T square;
  T bend;  // where the parabola becomes a line
};

// The weights of a run, or nullptr if there are none.
template <typename T>
struct Weights {
  Weights(const KernelContext& run, int inside_index, int outside_index)
      : inside(inside_index < 0 ? nullptr : run.input(inside_index).data<T>()),
        outside(outside_index < 0 ? nullptr : run.input(outside_index).data<T>()) {}
  const T* inside;
  const T* outside;
};

// The losses of rows. The differences may be X or Y.
template <typename T>
struct SmoothLosses {
  // So that long rows don't lose small terms.
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    const T difference = x[i] - y[i];
    const T d = weights.inside == nullptr ? difference : weights.inside[i] * difference;
    const T loss = curve.Value(d);
    diffs[i] = d;
    *carry += static_cast<double>(weights.outside == nullptr ? loss : weights.outside[i] * loss);
  }
  __device__ void Finish(int64_t row, Carry sum) const { losses[row] = static_cast<T>(sum); }

  Curve<T> curve;
  Weights<T> weights;
  const T* x;
  const T* y;
  T* diffs;
  T* losses;
};

// Either gradient may be Diff, or nullptr.
template <typename T>
struct SmoothGradients {
  __device__ void operator()(int64_t i) const {
    T slope = dlosses[Divide(i, length).quotient] * curve.Slope(diffs[i]);
    if (weights.inside != nullptr) slope *= weights.inside[i];
    if (weights.outside != nullptr) slope *= weights.outside[i];
    if (dx != nullptr) dx[i] = slope;
    if (dy != nullptr) dy[i] = -slope;
  }

  Curve<T> curve;
  Weights<T> weights;
  const T* diffs;
  const T* dlosses;
  int64_t length;  // of a row
  T* dx;
  T* dy;
};

template <typename T>
std::unique_ptr<Kernel> PrepareSmoothL1Loss(PrepareContext& context) {
  const CudaFold<SmoothLosses<T>> fold(context, context.Input("X").shape.element_count());
  const Curve<T> curve(context);
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int inside = context.InputIndex("InsideWeight");
  const int outside = context.InputIndex("OutsideWeight");
  const int diff = context.OutputIndex("Diff");
  const int out = context.OutputIndex("Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = run.input(x).shape();
    AxisFlags all_but_rows{};
    std::fill_n(all_but_rows.begin() + 1, shape.rank() - 1, true);
    fold.Run(run, "smooth_l1_loss", CudaFoldView(shape, all_but_rows),
             {.curve = curve,
              .weights = Weights<T>(run, inside, outside),
              .x = run.input(x).data<T>(),
              .y = run.input(y).data<T>(),
              .diffs = run.output(diff).data<T>(),
              .losses = run.output(out).data<T>()});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSmoothL1LossGrad(PrepareContext& context) {
  const Curve<T> curve(context);
  const int diff = context.InputIndex("Diff");
  const int inside = context.InputIndex("InsideWeight");
  const int outside = context.InputIndex("OutsideWeight");
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  const int dy = context.OutputIndex("Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Shape& shape = run.input(diff).shape();
    ForEachOnDevice(run, "smooth_l1_loss_grad", shape.element_count(),
                    SmoothGradients<T>{.curve = curve,
                                       .weights = Weights<T>(run, inside, outside),
                                       .diffs = run.input(diff).data<T>(),
                                       .dlosses = run.input(gradient).data<T>(),
                                       .length = shape.element_count(1, shape.rank()),
                                       .dx = dx < 0 ? nullptr : run.output(dx).data<T>(),
                                       .dy = dy < 0 ? nullptr : run.output(dy).data<T>()});
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
