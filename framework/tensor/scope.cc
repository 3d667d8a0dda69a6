#include "framework/tensor/scope.h"

#include <utility>

namespace skiff {

const Tensor* Scope::Find(std::string_view name) const {
  const auto it = slots_.find(name);
  return it == slots_.end() || it->second->is_reserved ? nullptr : &it->second->tensor;
}

Tensor* Scope::FindMutable(std::string_view name) {
  const auto it = slots_.find(name);
  return it == slots_.end() ? nullptr : &it->second->tensor;
}

const Tensor& Scope::Get(std::string_view name) const {
  const Tensor* tensor = Find(name);
  SKIFF_ENFORCE(tensor != nullptr, kNotFound, "the scope holds no variable \"", name, "\"");
  return *tensor;
}

void Scope::Set(const std::string& name, Tensor tensor) {
  std::unique_ptr<Slot>& slot = slots_[name];
  if (slot == nullptr) slot = std::make_unique<Slot>();
  slot->tensor = std::move(tensor);
  slot->is_reserved = false;
  ++slot->version;
  ++generation_;
}

void Scope::Reserve(const std::string& name, Tensor tensor) {
  Set(name, std::move(tensor));
  slots_.find(name)->second->is_reserved = true;
}

void Scope::Reveal(std::string_view name) {
  const auto it = slots_.find(name);
  SKIFF_ENFORCE(it != slots_.end(), kNotFound, "the scope holds no variable \"", name, "\"");
  it->second->is_reserved = false;
}

void Scope::Assign(const std::string& name, const Tensor& tensor) {
  const Tensor* held = Find(name);
  const bool fits = held != nullptr && held->has_data() && held->shape() == tensor.shape() &&
                    held->dtype() == tensor.dtype() && held->layout() == tensor.layout();
  if (!fits) {
    Set(name, CopyToCpu(tensor));
    return;
  }
  Tensor* slot = FindMutable(name);
  CopyTensor(tensor, slot);
  slot->set_lod(tensor.lod());
  ++*Version(name);
}

uint64_t* Scope::Version(std::string_view name) {
  const auto it = slots_.find(name);
  SKIFF_ENFORCE(it != slots_.end(), kNotFound, "the scope holds no variable \"", name, "\"");
  return &it->second->version;
}

void Scope::Erase(std::string_view name) {
  const auto it = slots_.find(name);
  if (it == slots_.end()) return;
  if (!it->second->is_reserved) ++generation_;
  slots_.erase(it);
}

std::vector<std::string> Scope::Names() const {
  std::vector<std::string> names;
  names.reserve(slots_.size());
  for (const auto& [name, slot] : slots_) {
    if (!slot->is_reserved) names.push_back(name);
  }
  return names;
}

}  // namespace skiff
