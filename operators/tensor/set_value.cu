// CUDA kernels of set_value. Those of its gradient are in repetition.cu.
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/tensor/kernels/assigned_region.h"
#include "operators/tensor/kernels/cuda_dtypes.h"

namespace skiff {
namespace {

// The values of the attribute are in a table on the device, which the first run writes.
class CudaSetValues final : public Kernel {
 public:
  explicit CudaSetValues(const PrepareContext& context)
      : assignment_(context),
        bytes_(BytesOfValues(context, context.Input("Input").dtype)),
        table_(context.place(), bytes_.size()) {}

  void Run(const KernelContext& run) override {
    assignment_.Run(run, bytes_.empty() ? nullptr : table_.Store(bytes_, StreamOf(run)));
  }

 private:
  RegionAssignment assignment_;
  std::vector<uint8_t> bytes_;
  CudaTable<uint8_t> table_;
};

std::unique_ptr<Kernel> PrepareSetValue(PrepareContext& context) {
  if (!context.HasInput("ValueTensor")) return std::make_unique<CudaSetValues>(context);
  return MakeKernel([assignment = RegionAssignment(context), value = In<>(context, "ValueTensor")](
                        const KernelContext& run) { assignment.Run(run, value(run)); });
}

}  // namespace

void RegisterSetValueCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(registry, "set_value", PrepareSetValue);
}

}  // namespace skiff
