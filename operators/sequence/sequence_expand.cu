// CUDA kernels of sequence_expand; sequence_expand.cc has the formula.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_row_repeats.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// The groups of rows of X that a run repeats.
class ExpandedRows {
 public:
  explicit ExpandedRows(const PrepareContext& context)
      : x_(context, "X"),
        y_(context, "Y"),
        level_(LevelOf(context)),
        repeats_(std::make_shared<CudaRepeats>(
            context, static_cast<int64_t>((*context.InputLoD("Y"))[level_].size()) - 1)) {}

  RepeatGroups Send(const KernelContext& run) const {
    const LoD& sequences = x_.tensor(run).lod();
    return repeats_->Send(run, y_.tensor(run).lod()[level_],
                          sequences.empty() ? nullptr : &sequences[0]);
  }

 private:
  static size_t LevelOf(const OpContext& context) {
    const int64_t level = context.IntAttr("ref_level");
    return static_cast<size_t>(level < 0 ? context.Input("Y").lod_level - 1 : level);
  }

  In<> x_;
  In<> y_;
  size_t level_;
  std::shared_ptr<CudaRepeats> repeats_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceExpand(PrepareContext& context) {
  return MakeRowsKernel(
      [expanded = ExpandedRows(context), row_bytes = RowWidth(context, "X") * int64_t{sizeof(T)},
       x = In<>(context, "X"), out = Out<>(context, "Out")](const KernelContext& run) {
        RepeatRows(run, expanded.Send(run), row_bytes, x.tensor(run), &out.tensor(run));
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceExpandGrad(PrepareContext& context) {
  return MakeRowsKernel([expanded = ExpandedRows(context), width = RowWidth(context, "X"),
                         out_grad = In<>(context, "Out@GRAD"),
                         x_grad = Out<>(context, "X@GRAD")](const KernelContext& run) {
    SumRepeats<T>(run, expanded.Send(run), width, out_grad.tensor(run), &x_grad.tensor(run));
  });
}

template <typename T>
void AddSequenceExpandForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_expand", PrepareSequenceExpand<T>);
}

template <typename T>
void AddSequenceExpandGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_expand_grad", PrepareSequenceExpandGrad<T>);
}

}  // namespace

void RegisterSequenceExpandCuda(OpRegistry& registry) {
  AddSequenceExpandForwardKernel<float>(registry);
  AddSequenceExpandForwardKernel<double>(registry);
  AddSequenceExpandForwardKernel<int32_t>(registry);
  AddSequenceExpandForwardKernel<int64_t>(registry);
  AddSequenceExpandGradKernel<float>(registry);
  AddSequenceExpandGradKernel<double>(registry);
}

}  // namespace skiff
