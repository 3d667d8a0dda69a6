#include "framework/op/device_sum.h"

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr const char* kType = "sum";

Op SumOp() {
  Op op(kType);
  op.SetInput("X", {"sum", "x"}).SetOutput("Out", {"sum"});
  return op;
}

}  // namespace

PrepareContext DeviceSum::ContextOf(const OpRegistry& registry, const Op& op, const TensorMeta& x,
                                    Place place) {
  return PrepareContext(op, registry.Get(kType), {x, x}, {x}, place);
}

bool DeviceSum::IsPossible(const OpRegistry& registry, const TensorMeta& x, Place place) {
  if (registry.Find(kType) == nullptr || x.is_selected_rows()) return false;
  const Op op = SumOp();
  return registry.FindKernel(ContextOf(registry, op, x, place)) != nullptr;
}

DeviceSum::DeviceSum(const OpRegistry& registry, const TensorMeta& x, Place place) : op_(SumOp()) {
  PrepareContext context = ContextOf(registry, op_, x, place);
  kernel_ = registry.SelectKernel(context).prepare(context);
  SKIFF_ENFORCE(context.workspace_bytes().empty() && context.derived_forms().empty(),
                kUnimplemented, "the kernel of ", kType, " on ", place, " asks for ",
                context.workspace_bytes().size(), " workspaces and ",
                context.derived_forms().size(),
                " derived forms to add two tensors: expected none of either");
}

void DeviceSum::Add(const DeviceContext& device, Tensor* x, Tensor* sum) {
  KernelContext run;
  run.inputs = {sum, x};
  run.outputs = {sum};
  const uint64_t seed = 0;
  run.seed = run.step = &seed;
  run.device_context = &device;
  kernel_->Bind(run);
  kernel_->Run(run);
}

}  // namespace skiff
