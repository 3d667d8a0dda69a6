// CUDA kernels of nll_loss and its gradient; nll_loss.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/loss/kernels/cuda_labels.cuh"
#include "operators/loss/kernels/nll_reduction.h"

namespace skiff {
namespace {

template <typename T>
struct NllItem {
  int64_t place;  // in X; -1: the item doesn't count
  T weight;
};

template <typename T>
struct CudaNllItems {
  __device__ NllItem<T> At(int64_t item) const {
    const int64_t label = labels.ClassOf(item, true);
    if (label < 0) return {-1, T{0}};
    return {extents.Start(item) + label * extents.inner,
            weights == nullptr ? T{1} : weights[label]};
  }

  AxisExtents extents;  // of the classes
  CudaLabels labels;
  const T* weights;  // nullptr: all 1
};

template <typename T>
struct NllLosses {
  __device__ void operator()(int64_t i) const {
    const NllItem<T> item = items.At(i);
    losses[i] = item.place < 0 ? T{0} : -item.weight * x[item.place];
  }

  CudaNllItems<T> items;
  const T* x;
  T* losses;
};

template <typename T>
struct NllLossSums {
  struct Carry {
    double loss;
    double weight;
  };
  static __device__ Carry Identity() { return {0, 0}; }
  static __device__ Carry Join(Carry a, Carry b) { return {a.loss + b.loss, a.weight + b.weight}; }
  __device__ void Add(int64_t i, int64_t, int64_t, Carry* carry) const {
    const NllItem<T> item = items.At(i);
    if (item.place < 0) return;
    carry->loss -= static_cast<double>(item.weight) * static_cast<double>(x[item.place]);
    carry->weight += static_cast<double>(item.weight);
  }
  __device__ void Finish(int64_t, Carry sums) const {
    *loss = static_cast<T>(ReducedNll(reduction, sums.loss, sums.weight));
    *total_weight = static_cast<T>(sums.weight);
  }

  CudaNllItems<T> items;
  NllReduction reduction;
  const T* x;
  T* loss;
  T* total_weight;
};

template <typename T>
struct NllGradients {
  __device__ void operator()(int64_t i) const {
    const NllItem<T> item = items.At(i);
    if (item.place < 0) return;
    dx[item.place] = NllGradient(reduction, item.weight, dout[i * step], *total_weight);
  }

  CudaNllItems<T> items;
  NllReduction reduction;
  const T* dout;
  int64_t step;  // 0: a reduced loss has one gradient for all items
  const T* total_weight;
  T* dx;
};

template <typename T>
class CudaNllKernel : public CudaLabelKernel {
 public:
  explicit CudaNllKernel(const OpContext& context)
      : CudaLabelKernel(context), reduction_(NllReductionOf(context)), weight_(context, "Weight") {}
  bool AcceptsFewerRows() const override { return true; }

 protected:
  CudaNllItems<T> ItemsOf(const KernelContext& run, const Shape& x) {
    const AxisExtents extents = ExtentsOfAxis(x, 1);
    return {extents, LabelsOf(run, extents.length), weight_(run)};
  }

  NllReduction reduction_;

 private:
  In<T> weight_;
};

template <typename T>
class CudaNllLoss final : public CudaNllKernel<T> {
 public:
  explicit CudaNllLoss(PrepareContext& context)
      : CudaNllKernel<T>(context),
        fold_(context, ExtentsOfAxis(context.Input("X").shape, 1).lines()),
        x_(context, "X"),
        out_(context, "Out"),
        total_weight_(context, "Total_weight") {}

  void Run(const KernelContext& run) override {
    const CudaNllItems<T> items = this->ItemsOf(run, x_.shape(run));
    if (this->reduction_ == NllReduction::kNone) {
      FillBytesOnDevice(run, total_weight_(run), 0, sizeof(T));
      return ForEachOnDevice(run, "nll_loss", items.extents.lines(),
                             NllLosses<T>{items, x_(run), out_(run)});
    }
    fold_.Run(run, "nll_loss", CudaFoldView(items.extents.lines(), 1),
              {items, this->reduction_, x_(run), out_(run), total_weight_(run)});
  }

 private:
  CudaFold<NllLossSums<T>> fold_;
  In<T> x_;
  Out<T> out_;
  Out<T> total_weight_;
};

template <typename T>
class CudaNllLossGrad final : public CudaNllKernel<T> {
 public:
  explicit CudaNllLossGrad(PrepareContext& context)
      : CudaNllKernel<T>(context),
        gradient_(context, "Out@GRAD"),
        total_weight_(context, "Total_weight"),
        x_gradient_(context, "X@GRAD") {}

  void Run(const KernelContext& run) override {
    Tensor& dx = x_gradient_.tensor(run);
    FillBytesOnDevice(run, dx.raw_data(), 0, dx.byte_count());
    const CudaNllItems<T> items = this->ItemsOf(run, dx.shape());
    const int64_t step = this->reduction_ == NllReduction::kNone ? 1 : 0;
    ForEachOnDevice(run, "nll_loss_grad", items.extents.lines(),
                    NllGradients<T>{items, this->reduction_, gradient_(run), step,
                                    total_weight_(run), x_gradient_(run)});
  }

 private:
  In<T> gradient_;
  In<T> total_weight_;
  Out<T> x_gradient_;
};

}  // namespace

void RegisterNllLossCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "nll_loss", [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CudaNllLoss<T>>(context);
      });
  AddCudaKernels<float, double>(
      registry, "nll_loss_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CudaNllLossGrad<T>>(context);
      });
}

}  // namespace skiff
