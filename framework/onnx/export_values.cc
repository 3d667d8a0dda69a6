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

ExportValues::ExportValues(const Block& block, ExportValues* outer)
    : block_(block), scope_(outer->scope_), graph_(outer->graph_), outer_(outer) {}

const ExportValues& ExportValues::HolderOf(const std::string& variable) const {
  const bool is_here = outer_ == nullptr || values_.contains(variable) ||
                       missing_.contains(variable) || block_.FindLocalVar(variable) != nullptr;
  return is_here ? *this : outer_->HolderOf(variable);
}

std::string ExportValues::AddConstant(const Var& var) {
  if (outer_ != nullptr) return outer_->AddConstant(var);
  const auto [entry, is_new] = values_.try_emplace(var.name, Value{.name = var.name, .lod = {}});
  if (is_new) graph_->AddInitializer(var.name, CopyToCpu(ConstantFor(var, scope_)));
  return entry->second.name;
}

std::string ExportValues::Find(const std::string& variable) {
  const ExportValues& holder = HolderOf(variable);
  const auto found = holder.values_.find(variable);
  if (found != holder.values_.end()) return found->second.name;
  const Var* var = block_.FindVar(variable);
  const bool is_constant =
      var != nullptr && var->persistable && !holder.missing_.contains(variable);
  return is_constant ? AddConstant(*var) : std::string();
}

std::string ExportValues::NextName(const std::string& variable) {
  // The names of the root block's variables are reserved. A persistable's name is that of the
  // constant that it is at first.
  const Var* var = block_.FindVar(variable);
  const bool is_first =
      outer_ == nullptr && !values_.contains(variable) && !(var != nullptr && var->persistable);
  return is_first ? variable : graph_->FreshName(variable);
}

void ExportValues::Set(const std::string& variable, std::string value, LoDValues lod) {
  values_[variable] = {.name = std::move(value), .lod = std::move(lod)};
}

LoDValues ExportValues::FindLoD(const std::string& variable) const {
  const ExportValues& holder = HolderOf(variable);
  const auto found = holder.values_.find(variable);
  return found == holder.values_.end() ? LoDValues{} : found->second.lod;
}

void ExportValues::SetMissing(const std::string& variable, std::string reason) {
  values_.erase(variable);
  missing_[variable] = std::move(reason);
}

std::string ExportValues::WhyMissing(const std::string& variable) const {
  const ExportValues& holder = HolderOf(variable);
  const auto found = holder.missing_.find(variable);
  return found != holder.missing_.end() ? found->second : "nothing computes it";
}

std::vector<std::string> ExportValues::Shared(
    const std::string& key, const std::function<std::vector<std::string>()>& make) {
  for (const ExportValues* values = this; values != nullptr; values = values->outer_) {
    const auto found = values->shared_.find(key);
    if (found != values->shared_.end()) return found->second;
  }
  std::vector<std::string> made = make();
  for (const std::string& value : made) graph_->Pin(value);
  return shared_[key] = std::move(made);
}

}  // namespace skiff::onnx_export
