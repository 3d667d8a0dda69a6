#include "framework/tensor/replaced_values.h"

#include <algorithm>

namespace skiff {
namespace {

// On its own place.
Tensor CopyOf(const Tensor& tensor) {
  Tensor copy(tensor.shape(), tensor.dtype(), tensor.place(), tensor.layout());
  CopyTensor(tensor, &copy);
  copy.set_lod(tensor.lod());
  return copy;
}

}  // namespace

ReplacedValues::ReplacedValues(Scope* scope, const std::vector<std::string>& names,
                               const std::function<void()>& write)
    : scope_(scope) {
  SKIFF_ENFORCE(!scope->has_replaced_values(), kFailedPrecondition,
                "the scope has replaced values: restore them before others are put in their place");
  for (const std::string& name : names) own_.emplace_back(name, CopyOf(scope->Get(name)));
  try {
    write();
  } catch (...) {
    PutBack();
    throw;
  }
  scope->replaced_ = this;
}

void ReplacedValues::Restore() {
  if (scope_ == nullptr) return;
  scope_->replaced_ = nullptr;
  PutBack();
}

void ReplacedValues::PutBack() {
  for (const auto& [name, tensor] : own_) scope_->Assign(name, tensor);
  scope_ = nullptr;
  own_.clear();
}

bool ReplacedValues::Contains(std::string_view name) const {
  return std::ranges::any_of(own_, [&](const auto& own) { return own.first == name; });
}

void CheckNotReplaced(const Scope& scope, std::string_view name, std::string_view what) {
  const ReplacedValues* replaced = scope.replaced_values();
  SKIFF_ENFORCE(replaced == nullptr || !replaced->Contains(name), kFailedPrecondition, what, ": \"",
                name, "\" holds a replaced value, an average for example; restore its own first");
}

}  // namespace skiff
