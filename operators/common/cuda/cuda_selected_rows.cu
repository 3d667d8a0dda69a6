#include <cuda_runtime.h>

#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_sorted_rows.cuh"
#include "operators/common/cuda/cuda_values_kernels.h"
#include "operators/common/half.h"

namespace skiff {
namespace {

// numbers[i] = rows[i], -1 for what is no row.
__global__ void ReadRowNumbers(const int64_t* rows, int64_t count, int64_t height,
                               int32_t* numbers) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t row = rows[i];
    const bool is_row = row >= 0 && row < height;
    numbers[i] = is_row ? static_cast<int32_t>(row) : -1;
  }
}

struct WriteFirstSlot {
  __device__ void operator()(int64_t k) const {
    if (IsFirstOfRow(sorted, k)) slots[sorted.rows[k]] = static_cast<int32_t>(sorted.positions[k]);
  }

  SortedRows sorted;
  int32_t* slots;
};

// Runs a kernel on the values, and copies the row numbers.
class ValuesKernel final : public Kernel {
 public:
  ValuesKernel(std::unique_ptr<Kernel> values, int x, int out)
      : values_(std::move(values)), x_(x), out_(out) {}

  void Bind(const KernelContext& run) override { values_->Bind(run); }
  void Run(const KernelContext& run) override {
    values_->Run(run);
    CopyRowNumbersOnDevice(run, run.input(x_), &run.output(out_));
  }
  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    values_->ThrowFault(fault);
    Kernel::ThrowFault(fault);  // for the compiler, to which nvcc doesn't pass on [[noreturn]]
  }
  bool AcceptsFewerRows() const override { return values_->AcceptsFewerRows(); }

 private:
  std::unique_ptr<Kernel> values_;
  int x_;
  int out_;
};

}  // namespace

void CopyRowNumbersOnDevice(const KernelContext& run, const Tensor& from, Tensor* to) {
  const std::span<const int64_t> rows = from.rows();
  CopyOnDevice(run, rows.data(), to->rows().data(), static_cast<int64_t>(rows.size_bytes()));
}

template <typename T>
CudaMergedRows<T>::CudaMergedRows(PrepareContext& context, const TensorMeta& x)
    : sums_(context, x.shape[0], RowWidth(x.shape)) {
  CheckDeviceRows(context, x.layout.height);
}

template <typename T>
SortedRows CudaMergedRows<T>::Sort(const KernelContext& run, const Tensor& x) const {
  const std::span<const int64_t> rows = x.rows();
  const auto count = static_cast<int64_t>(rows.size());
  if (count > 0) {
    ReadRowNumbers<<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
        rows.data(), count, x.height(), sums_.rows(run));
    CheckLaunch("row numbers of selected rows");
  }
  return sums_.Sort(run, count, x.height());
}

template <typename T>
void CudaMergedRows<T>::SetFirstSlots(const KernelContext& run, const SortedRows& sorted,
                                      int32_t* slots) const {
  FillBytesOnDevice(run, slots, 0xFF, ByteCount(sorted.length, DType::kInt32));
  ForEachOnDevice(run, "slots of selected rows", sorted.count, WriteFirstSlot{sorted, slots});
}

template <typename T>
void CudaMergedRows<T>::AddTo(const KernelContext& run, const Tensor& x, const T* values,
                              T* dense) const {
  sums_.AddSorted(run, Sort(run, x), RowWidth(x.shape()), values, dense);
}

template class CudaMergedRows<float>;
template class CudaMergedRows<double>;

void AddCudaValuesKernels(OpRegistry& registry, std::string_view type) {
  // A copy, as kernels are added.
  const std::vector<KernelDef> kernels = registry.Kernels(type);
  for (const KernelDef& kernel : kernels) {
    if (kernel.place != PlaceKind::kCuda || kernel.selected_rows) continue;
    if (!IsFloat(kernel.dtype)) continue;
    const auto prepare =
        [of_values = kernel.prepare]<typename>(PrepareContext& context) -> std::unique_ptr<Kernel> {
      return std::make_unique<ValuesKernel>(of_values(context), context.InputIndex("X"),
                                            context.OutputIndex("Out"));
    };
    VisitDType<float, double, Float16, BFloat16>(kernel.dtype, type, [&]<typename T>(T) {
      registry.AddSelectedRowsKernels<T>(type, prepare, PlaceKind::kCuda);
    });
  }
}

}  // namespace skiff
