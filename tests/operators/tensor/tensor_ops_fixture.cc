#include "tests/operators/tensor/tensor_ops_fixture.h"

namespace skiff {

void Run(const OpRegistry& registry, const Op& op, std::vector<Tensor*> inputs,
         std::vector<Tensor*> outputs, int times) {
  const auto metas = [](const std::vector<Tensor*>& tensors) {
    std::vector<TensorMeta> result;
    for (const Tensor* tensor : tensors) {
      result.push_back({.shape = tensor->shape(), .dtype = tensor->dtype()});
    }
    return result;
  };
  PrepareContext context(op, registry.Get(op.type), metas(inputs), metas(outputs));
  const auto kernel = registry.SelectKernel(context).prepare(context);
  std::vector<std::vector<int64_t>> workspaces;
  KernelContext run;
  for (const int64_t bytes : context.workspace_bytes()) {
    workspaces.emplace_back(static_cast<size_t>(bytes / 8 + 1));
  }
  for (std::vector<int64_t>& workspace : workspaces) run.workspaces.push_back(workspace.data());
  run.inputs = std::move(inputs);
  run.outputs = std::move(outputs);
  for (int i = 0; i < times; ++i) kernel->Run(run);
}

std::string RunError(const OpRegistry& registry, const Op& op, std::vector<Tensor*> inputs,
                     std::vector<Tensor*> outputs) {
  try {
    Run(registry, op, std::move(inputs), std::move(outputs));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Op OpOf(const std::string& type, const std::vector<std::string>& inputs, AttributeMap attrs,
        const std::string& output) {
  Op op(type);
  for (const std::string& slot : inputs) op.SetInput(slot, {slot});
  op.attrs = std::move(attrs);
  if (!output.empty()) op.SetOutput(output, {"out"});
  return op;
}

}  // namespace skiff
