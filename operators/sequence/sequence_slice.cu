// The CUDA kernel of sequence_slice_grad; sequence_slice.cc has the formula. sequence_slice stays
// on the host, which must know the lengths to make Out and its LoD.
#include <memory>
#include <string>

#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/sequence/kernels/cuda_lengths.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// A fault is at position 2i or 2i + 1, if it is Offset[i] or Length[i].
struct SliceLengths {
  CudaOffsets sequences;
  const int64_t* offsets;
  const int64_t* lengths;
  uint64_t* fault;

  __device__ int64_t operator()(int64_t i) const {
    const int64_t rows = sequences.End(i) - sequences.Begin(i);
    const int64_t offset = offsets[i];
    const int64_t length = lengths[i];
    if (offset < 0 || offset > rows) {
      NoteFault(fault, 2 * i, offset);
      return 0;
    }
    if (length >= 0 && length <= rows - offset) return length;
    NoteFault(fault, 2 * i + 1, length);
    return 0;
  }
};

// Row i of X@GRAD.
struct SliceMoves {
  CudaOffsets sequences;
  CudaOffsets slices;
  const int64_t* offsets;

  __device__ RowMove operator()(int64_t row) const {
    const int64_t i = sequences.SequenceOf(row);
    const int64_t length = slices.End(i) - slices.Begin(i);
    if (length == 0) return {-1, row};  // perhaps since the offset is refused
    const int64_t at = row - sequences.Begin(i) - offsets[i];
    return {at >= 0 && at < length ? slices.Begin(i) + at : -1, row};
  }
};

class SequenceSliceGradKernel final : public Kernel {
 public:
  SequenceSliceGradKernel(PrepareContext& context, int64_t number_bytes)
      : op_(context.op().type),
        row_bytes_(RowWidth(context, "X") * number_bytes),
        level_(SendLevel(context, "X")),
        lengths_(context, SequenceCount(context, "X")),
        x_(context, "X"),
        offset_(context, "Offset"),
        length_(context, "Length"),
        out_grad_(context, "Out@GRAD"),
        x_grad_(context, "X@GRAD") {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Tensor& gradient = out_grad_.tensor(run);
    const CudaOffsets sequences = level_->Send(run, x_.tensor(run));
    const auto* offsets = offset_(run);
    const SliceLengths length_of{sequences, offsets, length_(run), run.fault};
    const CudaOffsets slices = lengths_.Sum(run, sequences.count, gradient, length_of,
                                            /*sum_position=*/2 * sequences.count);
    CopyRows(run, gradient.raw_data(), x_grad_.shape(run)[0], row_bytes_,
             SliceMoves{sequences, slices, offsets}, x_grad_(run));
  }

  void ThrowFault(const DataFault& fault) const override {
    lengths_.ThrowIfSum(op_, fault);
    const int64_t i = fault.position / 2;
    const int64_t rows = level_->Sent(i + 1) - level_->Sent(i);
    if (fault.position % 2 == 0) {
      Throw(ErrorCode::kOutOfRange, op_, ": Offset[", i, "] is ", fault.value, ", expected 0 to ",
            rows, ", the rows of sequence ", i);
    }
    Throw(ErrorCode::kOutOfRange, op_, ": Length[", i, "] is ", fault.value,
          ", expected no more than is left behind Offset[", i, "] of the ", rows,
          " rows of sequence ", i, ", and no negative number");
  }

 private:
  std::string op_;
  int64_t row_bytes_;
  std::shared_ptr<CudaLevel> level_;
  CudaLengths lengths_;
  In<> x_;
  In<int64_t> offset_;
  In<int64_t> length_;
  In<> out_grad_;
  Out<> x_grad_;
};

template <typename T>
void AddSequenceSliceGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_slice_grad",
                   [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                     return std::make_unique<SequenceSliceGradKernel>(context, sizeof(T));
                   });
}

}  // namespace

void RegisterSequenceSliceCuda(OpRegistry& registry) {
  AddSequenceSliceGradKernel<Float16>(registry);
  AddSequenceSliceGradKernel<BFloat16>(registry);
  AddSequenceSliceGradKernel<float>(registry);
  AddSequenceSliceGradKernel<double>(registry);
}

}  // namespace skiff
