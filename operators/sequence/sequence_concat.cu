// CUDA kernels of sequence_concat; sequence_concat.cc has the formula. There is a launch for each
// input.
#include <memory>
#include <vector>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// A sequence of an input: where it begins, there and in Out.
struct ConcatPart {
  friend bool operator==(const ConcatPart&, const ConcatPart&) = default;

  int64_t row = 0;
  int64_t out_row = 0;
};

// Row i of the input.
struct ConcatMoves {
  const ConcatPart* parts;
  int64_t count;
  bool is_gradient;

  __device__ RowMove operator()(int64_t row) const {
    int64_t part = 0;
    int64_t after = count;
    while (after - part > 1) {
      const int64_t middle = (part + after) / 2;
      (parts[middle].row <= row ? part : after) = middle;
    }
    const int64_t out_row = parts[part].out_row + row - parts[part].row;
    return is_gradient ? RowMove{out_row, row} : RowMove{row, out_row};
  }
};

class ConcatKernel final : public Kernel {
 public:
  ConcatKernel(const PrepareContext& context, bool is_gradient, int64_t number_bytes)
      : is_gradient_(is_gradient),
        row_bytes_(RowWidth(context, "X") * number_bytes),
        out_(is_gradient ? context.InputIndex("Out@GRAD") : context.OutputIndex("Out")),
        parts_(context, SequenceCount(context, "X") * int64_t(context.InputCount("X"))) {
    for (size_t i = 0; i < context.InputCount("X"); ++i) {
      inputs_.push_back(context.InputIndex("X", i));
      gradients_.push_back(is_gradient ? context.OutputIndex("X@GRAD", i) : -1);
    }
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const int64_t sequences = SequenceRows(run.input(inputs_[0])).size();
    const auto count = static_cast<int64_t>(inputs_.size());
    int64_t out_row = 0;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      for (int64_t i = 0; i < count; ++i) {
        const RowRange rows = SequenceRows(run.input(inputs_[size_t(i)]))[sequence];
        parts_[i * sequences + sequence] = {rows.begin, out_row};
        out_row += rows.count();
      }
    }
    const ConcatPart* parts = parts_.Send(run);
    for (int64_t i = 0; i < count; ++i) {
      const ConcatMoves moves{parts + i * sequences, sequences, is_gradient_};
      const Tensor& x = run.input(inputs_[size_t(i)]);
      // The data of X is absent in the gradient op, but not its LoD.
      const int64_t rows = sequences == 0 ? 0 : SequenceRows(x)[sequences - 1].end;
      if (!is_gradient_) {
        CopyRows(run, x.raw_data(), rows, row_bytes_, moves, run.output(out_).raw_data());
      } else if (gradients_[size_t(i)] >= 0) {
        CopyRows(run, run.input(out_).raw_data(), rows, row_bytes_, moves,
                 run.output(gradients_[size_t(i)]).raw_data());
      }
    }
  }

 private:
  bool is_gradient_;
  int64_t row_bytes_;
  std::vector<int> inputs_;
  std::vector<int> gradients_;
  int out_;
  CudaEntries<ConcatPart> parts_;  // of each input, those of its sequences
};

template <typename T>
void AddSequenceConcatForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(
      registry, "sequence_concat", [](PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<ConcatKernel>(context, /*is_gradient=*/false, sizeof(T));
      });
}

template <typename T>
void AddSequenceConcatGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(
      registry, "sequence_concat_grad", [](PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<ConcatKernel>(context, /*is_gradient=*/true, sizeof(T));
      });
}

}  // namespace

void RegisterSequenceConcatCuda(OpRegistry& registry) {
  AddSequenceConcatForwardKernel<float>(registry);
  AddSequenceConcatForwardKernel<double>(registry);
  AddSequenceConcatForwardKernel<int32_t>(registry);
  AddSequenceConcatForwardKernel<int64_t>(registry);
  AddSequenceConcatGradKernel<float>(registry);
  AddSequenceConcatGradKernel<double>(registry);
}

}  // namespace skiff
