// The CUDA kernel of sequence_unpad_grad; sequence_unpad.cc has the formula. sequence_unpad stays
// on the host, which must know the lengths to make Out and its LoD.
#include <memory>
#include <optional>
#include <string>

#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/sequence/kernels/cuda_lengths.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

struct PaddedLengths {
  const int64_t* lengths;
  int64_t padded;
  uint64_t* fault;

  __device__ int64_t operator()(int64_t i) const {
    const int64_t length = lengths[i];
    if (length >= 0 && length <= padded) return length;
    NoteFault(fault, i, length);
    return 0;
  }
};

class SequenceUnpadGradKernel final : public Kernel {
 public:
  SequenceUnpadGradKernel(PrepareContext& context, int64_t number_bytes)
      : op_(context.op().type),
        padded_(context.Input("X").shape[1]),
        row_bytes_(context.Input("X").shape.element_count(2, context.Input("X").shape.rank()) *
                   number_bytes),
        length_(context, "Length"),
        out_grad_(context, "Out@GRAD"),
        x_grad_(context, "X@GRAD") {
    const int64_t most_sequences = context.Input("X").shape[0];
    if (!length_.is_there()) {
      level_.emplace(context, most_sequences);
    } else {
      lengths_.emplace(context, most_sequences);
    }
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Tensor& gradient = out_grad_.tensor(run);
    const int64_t count = x_grad_.shape(run)[0];
    const CudaOffsets sequences =
        length_.is_there()
            ? lengths_->Sum(run, count, gradient, PaddedLengths{length_(run), padded_, run.fault},
                            /*sum_position=*/count)
            : SendOffsets(run, count);
    CopyRows(run, gradient.raw_data(), count * padded_, row_bytes_, PadMoves{sequences, padded_},
             x_grad_(run));
  }

  void ThrowFault(const DataFault& fault) const override {
    lengths_->ThrowIfSum(op_, fault);
    ThrowPaddedLength(op_, fault.position, fault.value, padded_);
  }

 private:
  // Of the sequences of Out@GRAD.
  CudaOffsets SendOffsets(const KernelContext& run, int64_t count) {
    const SequenceRows sequences(out_grad_.tensor(run));
    for (int64_t i = 0; i < count; ++i) CheckPaddedLength(op_, i, sequences[i].count(), padded_);
    return level_->Send(run, out_grad_.tensor(run));
  }

  std::string op_;
  int64_t padded_;
  int64_t row_bytes_;
  In<int64_t> length_;
  In<> out_grad_;
  Out<> x_grad_;
  // Of the sequences: one of the two.
  std::optional<CudaLevel> level_;
  std::optional<CudaLengths> lengths_;
};

template <typename T>
void AddSequenceUnpadGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_unpad_grad",
                   [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                     return std::make_unique<SequenceUnpadGradKernel>(context, sizeof(T));
                   });
}

}  // namespace

void RegisterSequenceUnpadCuda(OpRegistry& registry) {
  AddSequenceUnpadGradKernel<Float16>(registry);
  AddSequenceUnpadGradKernel<BFloat16>(registry);
  AddSequenceUnpadGradKernel<float>(registry);
  AddSequenceUnpadGradKernel<double>(registry);
}

}  // namespace skiff
