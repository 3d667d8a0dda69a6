// CUDA kernels of merge_selected_rows, get_tensor_from_selected_rows and selected_rows_to_dense;
// their .cc files say what they compute.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_numbering.cuh"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_sorted_rows.cuh"
#include "operators/common/cuda/cuda_words.cuh"

namespace skiff {
namespace {

struct IsFirstSlot {
  __device__ bool operator()(int64_t k) const { return IsFirstOfRow(sorted, k); }

  SortedRows sorted;
};

// Row `number` of the merged rows is that of place k.
struct ListRow {
  __device__ void operator()(int64_t k, int64_t number, bool is_first) const {
    if (!is_first) return;
    numbers[k] = static_cast<uint32_t>(number);
    rows[number] = sorted.rows[k];
  }

  SortedRows sorted;
  uint32_t* numbers;
  int64_t* rows;
};

template <typename T>
std::unique_ptr<Kernel> PrepareMergeSelectedRows(PrepareContext& context) {
  const TensorMeta& x = context.Input("X");
  const CudaMergedRows<T> merged(context, x);
  const CudaNumbering numbering(context, x.shape[0]);
  const int numbers_workspace =
      context.RequestWorkspace(x.shape[0] * static_cast<int64_t>(sizeof(uint32_t)));
  return MakeRowsKernel([=, from = In<>(context, "X"),
                         to = Out<>(context, "Out")](const KernelContext& run) {
    const Tensor& rows = from.tensor(run);
    Tensor& out = to.tensor(run);
    auto* const numbers = static_cast<uint32_t*>(run.workspace(numbers_workspace));
    const SortedRows sorted = merged.Sort(run, rows);
    // -1: unused.
    FillBytesOnDevice(run, out.rows().data(), 0xFF, static_cast<int64_t>(out.rows().size_bytes()));
    numbering.Run(run, "merge_selected_rows", sorted.count, IsFirstSlot{sorted},
                  ListRow{sorted, numbers, out.rows().data()});
    merged.sums().SetAt(run, sorted, numbers, RowWidth(rows.shape()), rows.raw_data(),
                        out.raw_data());
  });
}

// Zeros for unused slots, whose values aren't read.
template <typename Word, typename Index>
__global__ void CopyUsedSlots(Divisor<Index> row_words, Index words, const int64_t* rows,
                              const Word* x, Word* out) {
  const Index stride = Index{gridDim.x} * blockDim.x;
  for (Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += stride) {
    Index slot = i;
    row_words.TakeRemainder(&slot);
    out[i] = rows[slot] < 0 ? Word{} : x[i];
  }
}

std::unique_ptr<Kernel> PrepareGetTensorFromSelectedRows(PrepareContext& context) {
  return MakeRowsKernel([x = In<>(context, "X"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const Tensor& rows = x.tensor(run);
    Tensor& values = out.tensor(run);
    const int64_t row_bytes = RowWidth(rows.shape()) * SizeOf(rows.dtype());
    const int64_t word_bytes =
        WordBytes({row_bytes, AddressOf(rows.raw_data()), AddressOf(values.raw_data())});
    const int64_t words = values.byte_count() / word_bytes;
    if (words == 0) return;
    VisitIndexType(words, [&]<typename Index>() {
      VisitWord(word_bytes, [&]<typename Word>() {
        CopyUsedSlots<Word, Index><<<CudaBlocksOfThreads(words), kCudaThreads, 0, StreamOf(run)>>>(
            Divisor<Index>(row_bytes / word_bytes), static_cast<Index>(words), rows.rows().data(),
            static_cast<const Word*>(rows.raw_data()), static_cast<Word*>(values.raw_data()));
      });
    });
    CheckLaunch("get_tensor_from_selected_rows");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSelectedRowsToDense(PrepareContext& context) {
  const CudaMergedRows<T> merged(context, context.Input("X"));
  const In<T> x(context, "X");
  return MakeRowsKernel([=, out = Out<>(context, "Out")](const KernelContext& run) {
    Tensor& dense = out.tensor(run);
    FillBytesOnDevice(run, dense.raw_data(), 0, dense.byte_count());
    merged.AddTo(run, x.tensor(run), x(run), dense.data<T>());
  });
}

}  // namespace

void RegisterSelectedRowsCuda(OpRegistry& registry) {
  registry.AddSelectedRowsKernels<float, double>(
      "merge_selected_rows",
      [=]<typename T>(PrepareContext& context) { return PrepareMergeSelectedRows<T>(context); },
      PlaceKind::kCuda);
  registry.AddSelectedRowsKernels<float, double>(
      "get_tensor_from_selected_rows",
      [=]<typename>(PrepareContext& context) { return PrepareGetTensorFromSelectedRows(context); },
      PlaceKind::kCuda);
  registry.AddSelectedRowsKernels<float, double>(
      "selected_rows_to_dense",
      [=]<typename T>(PrepareContext& context) { return PrepareSelectedRowsToDense<T>(context); },
      PlaceKind::kCuda);
}

}  // namespace skiff
