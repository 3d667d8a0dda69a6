// CUDA kernels of sequence_scatter; sequence_scatter.cc has the formula.
//
// A block takes a sequence, as many rows of Ids at a time as it has threads. The first of these
// that names an element of X adds all those updates that are for this element, in their order: the
// sums have the bits of the CPU.
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/integer.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// The ids of a run. They are refused if a row of X has no such element.
struct ScatterIds {
  const int64_t* ids;
  CudaOffsets sequences;
  int64_t width;  // of a row of X
  uint64_t* fault;

  // Returns the id of a row of Ids, -1 if it is refused.
  __device__ int64_t At(int64_t row) const {
    const int64_t id = ids[row];
    if (id >= 0 && id < width) return id;
    NoteFault(fault, row, id);
    return -1;
  }
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    AddUpdates(ScatterIds of, const T* updates, T* out) {
  __shared__ int64_t ids[kCudaThreads];
  __shared__ T numbers[kCudaThreads];
  const auto thread = static_cast<int>(threadIdx.x);
  for (int64_t sequence = blockIdx.x; sequence < of.sequences.count; sequence += gridDim.x) {
    const int64_t end = of.sequences.End(sequence);
    for (int64_t first = of.sequences.Begin(sequence); first < end; first += kCudaThreads) {
      const int64_t row = first + thread;
      const int64_t id = row < end ? of.At(row) : -1;
      ids[thread] = id;
      if (id >= 0) numbers[thread] = updates[row];
      __syncthreads();
      bool is_first = id >= 0;
      for (int before = 0; before < thread && is_first; ++before) is_first = ids[before] != id;
      if (is_first) {
        T* const to = out + sequence * of.width + id;
        T sum = *to;
        for (int other = thread; other < kCudaThreads; ++other) {
          if (ids[other] == id) sum = WrappingAdd(sum, numbers[other]);
        }
        *to = sum;
      }
      __syncthreads();
    }
  }
}

template <typename T>
struct TakeUpdates {
  ScatterIds of;
  const T* out_gradient;
  T* updates_gradient;

  __device__ void operator()(int64_t row) const {
    const int64_t id = of.At(row);
    if (id < 0) return;
    updates_gradient[row] = out_gradient[of.sequences.SequenceOf(row) * of.width + id];
  }
};

struct CheckIds {
  ScatterIds of;

  __device__ void operator()(int64_t row) const { of.At(row); }
};

// What the kernels of the op and of its gradient have in common. x_slot has the shape of X.
class ScatterKernel : public Kernel {
 public:
  bool AcceptsFewerRows() const override { return true; }

  void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, op_, ": Ids[", fault.position, "] = ", fault.value,
          ", expected an element of a row of X, 0 to ", width_ - 1);
  }

 protected:
  ScatterKernel(const PrepareContext& context, const char* x_slot)
      : op_(context.op().type),
        width_(RowWidth(context, x_slot)),
        level_(context, *context.InputLoD("Ids", 1)),
        ids_(context, "Ids") {}

  int64_t Rows(const KernelContext& run) const { return ids_.shape(run)[0]; }
  ScatterIds Send(const KernelContext& run) {
    return {ids_(run), level_.Send(run, ids_.tensor(run)), width_, run.fault};
  }

 private:
  std::string op_;
  int64_t width_;
  CudaLevel level_;
  In<int64_t> ids_;
};

template <typename T>
class SequenceScatterForwardKernel final : public ScatterKernel {
 public:
  explicit SequenceScatterForwardKernel(const PrepareContext& context)
      : ScatterKernel(context, "X"),
        x_(context, "X"),
        updates_(context, "Updates"),
        out_(context, "Out") {}

  void Run(const KernelContext& run) override {
    CopyOnDevice(run, x_(run), out_(run), x_.tensor(run).byte_count());
    const ScatterIds ids = Send(run);
    if (ids.sequences.count == 0) return;
    AddUpdates<<<CudaBlocks(ids.sequences.count), kCudaThreads, 0, StreamOf(run)>>>(
        ids, updates_(run), out_(run));
    CheckLaunch("sequence_scatter");
  }

 private:
  In<> x_;
  In<T> updates_;
  Out<T> out_;
};

template <typename T>
class SequenceScatterGradKernel final : public ScatterKernel {
 public:
  explicit SequenceScatterGradKernel(const PrepareContext& context)
      : ScatterKernel(context, "Out@GRAD"),
        out_grad_(context, "Out@GRAD"),
        x_grad_(context, "X@GRAD"),
        updates_grad_(context, "Updates@GRAD") {}

  void Run(const KernelContext& run) override {
    const ScatterIds ids = Send(run);
    if (updates_grad_.is_there()) {
      const TakeUpdates<T> take{ids, out_grad_(run), updates_grad_(run)};
      ForEachOnDevice(run, "sequence_scatter_grad", Rows(run), take);
    } else {
      ForEachOnDevice(run, "sequence_scatter_grad: ids", Rows(run), CheckIds{ids});
    }
    if (x_grad_.is_there()) {
      CopyOnDevice(run, out_grad_(run), x_grad_(run), out_grad_.tensor(run).byte_count());
    }
  }

 private:
  In<T> out_grad_;
  Out<> x_grad_;
  Out<T> updates_grad_;
};

template <typename T>
void AddSequenceScatterForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_scatter", PrepareKernel<SequenceScatterForwardKernel<T>>);
}

template <typename T>
void AddSequenceScatterGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_scatter_grad", PrepareKernel<SequenceScatterGradKernel<T>>);
}

}  // namespace

void RegisterSequenceScatterCuda(OpRegistry& registry) {
  AddSequenceScatterForwardKernel<float>(registry);
  AddSequenceScatterForwardKernel<double>(registry);
  AddSequenceScatterForwardKernel<int32_t>(registry);
  AddSequenceScatterForwardKernel<int64_t>(registry);
  AddSequenceScatterGradKernel<float>(registry);
  AddSequenceScatterGradKernel<double>(registry);
}

}  // namespace skiff
