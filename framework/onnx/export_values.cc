#include "framework/onnx/export_values.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/ir/master_name.h"

namespace skiff::onnx_export {
namespace {

// Returns what a constant for the variable holds: master weights if the scope has it in half only.
const Tensor& ConstantFor(const Var& var, const Scope& scope) {
  const Tensor& own = scope.Get(var.name);
  const Tensor* master = scope.Find(MasterName(var.name));
  const bool has_master = var.dtype == DType::kFloat32 && IsHalf(own.dtype()) && master != nullptr;
  const Tensor& tensor = has_master ? *master : own;
  SKIFF_ENFORCE(tensor.dtype() == var.dtype, kInvalidArgument, "\"", var.name, "\" is ",
                tensor.dtype(), " in the scope, but ", var.dtype, " in the program");
  SKIFF_ENFORCE(!tensor.is_selected_rows() && tensor.array() == nullptr && tensor.has_data(),
                kInvalidArgument, "\"", var.name, "\" is no dense tensor with data in the scope");
  return tensor;
}

}  // namespace

ExportValues::ExportValues(const Block& block, const Scope& scope, GraphWriter* graph)
    : block_(block), scope_(scope), graph_(graph) {
  for (const auto& var : block.vars()) graph->Reserve(var->name);
}

std::string ExportValues::Find(const std::string& variable) {
  const auto found = values_.find(variable);
  if (found != values_.end()) return found->second;
  const Var* var = block_.FindVar(variable);
  const bool is_constant = var != nullptr && var->persistable && !missing_.contains(variable);
  if (!is_constant) return {};
  graph_->AddInitializer(variable, CopyToCpu(ConstantFor(*var, scope_)));
  Set(variable, variable);
  return variable;
}

std::string ExportValues::NextName(const std::string& variable) {
  // A persistable's name is that of the constant that it is at first.
  const Var* var = block_.FindVar(variable);
  const bool is_first = !values_.contains(variable) && !(var != nullptr && var->persistable);
  return is_first ? variable : graph_->FreshName(variable);
}

void ExportValues::Set(const std::string& variable, std::string value) {
  values_[variable] = std::move(value);
}

void ExportValues::SetMissing(const std::string& variable, std::string reason) {
  values_.erase(variable);
  missing_[variable] = std::move(reason);
}

std::string ExportValues::WhyMissing(const std::string& variable) const {
  const auto found = missing_.find(variable);
  return found != missing_.end() ? found->second : "nothing computes it";
}

}  // namespace skiff::onnx_export
