// CUDA kernels of sequence_expand_as; sequence_expand_as.cc has the formula.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_row_repeats.cuh"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

std::shared_ptr<CudaRepeats> RepeatsOf(const PrepareContext& context) {
  return std::make_shared<CudaRepeats>(context, SequenceCount(context, "Y"));
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceExpandAs(PrepareContext& context) {
  return MakeRowsKernel([repeats = RepeatsOf(context),
                         row_bytes = RowWidth(context, "X") * int64_t{sizeof(T)},
                         x = In<>(context, "X"), y = In<>(context, "Y"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    RepeatRows(run, repeats->Send(run, y.tensor(run).lod()[0], nullptr), row_bytes, x.tensor(run),
               &out.tensor(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceExpandAsGrad(PrepareContext& context) {
  return MakeRowsKernel([repeats = RepeatsOf(context), width = RowWidth(context, "X"),
                         y = In<>(context, "Y"), out_grad = In<>(context, "Out@GRAD"),
                         x_grad = Out<>(context, "X@GRAD")](const KernelContext& run) {
    SumRepeats<T>(run, repeats->Send(run, y.tensor(run).lod()[0], nullptr), width,
                  out_grad.tensor(run), &x_grad.tensor(run));
  });
}

template <typename T>
void AddSequenceExpandAsForwardKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_expand_as", PrepareSequenceExpandAs<T>);
}

template <typename T>
void AddSequenceExpandAsGradKernel(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_expand_as_grad", PrepareSequenceExpandAsGrad<T>);
}

}  // namespace

void RegisterSequenceExpandAsCuda(OpRegistry& registry) {
  AddSequenceExpandAsForwardKernel<float>(registry);
  AddSequenceExpandAsForwardKernel<double>(registry);
  AddSequenceExpandAsForwardKernel<int32_t>(registry);
  AddSequenceExpandAsForwardKernel<int64_t>(registry);
  AddSequenceExpandAsGradKernel<float>(registry);
  AddSequenceExpandAsGradKernel<double>(registry);
}

}  // namespace skiff
