#include "framework/tensor/scope.h"

#include <utility>

#include "framework/base/str_cat.h"
#include "framework/tensor/bools.h"
#include "framework/tensor/pending_writes.h"
#include "framework/tensor/shared_writes.h"

namespace skiff {
namespace {

// In an operation of a scope: nothing has changed if it throws.
void CheckBoolsOf(const std::string& name, const Tensor& tensor) {
  if (FindBadBool(tensor)) CheckBools(tensor, StrCat("variable \"", name, "\""));
}

}  // namespace

size_t Scope::size() const { return slots_.size(); }

Scope::Slot& Scope::Settled(Slot& slot) const {
  // Every access to a tensor goes through here, so no reader sees a value that a kernel is still
  // writing in the background, and no tensor goes away that a device is still reading.
  if (work_ != nullptr) work_->Wait();
  if (slot.pending != nullptr) slot.pending->Wait();
  return slot;
}

const Tensor* Scope::Find(std::string_view name) const {
  const auto it = slots_.find(name);
  return it == slots_.end() || it->second->is_reserved ? nullptr : &Settled(*it->second).tensor;
}

Tensor* Scope::FindMutable(std::string_view name) {
  const auto it = slots_.find(name);
  return it == slots_.end() ? nullptr : &Settled(*it->second).tensor;
}

const Tensor& Scope::Get(std::string_view name) const {
  const Tensor* tensor = Find(name);
  SKIFF_ENFORCE(tensor != nullptr, kNotFound, "the scope holds no variable \"", name, "\"");
  return *tensor;
}

void Scope::Set(const std::string& name, Tensor tensor) {
  CheckBoolsOf(name, tensor);
  // First: if it throws, nothing has changed.
  if (work_ != nullptr) work_->Wait();
  std::unique_ptr<Slot>& slot = slots_[name];
  // A slot is a node of its own: plans and kernels hold pointers to its tensor and its version.
  if (slot == nullptr) slot = std::make_unique<Slot>();
  if (slot->pending != nullptr) slot->pending->Wait();
  slot->tensor = std::move(tensor);
  // The kernel writes the old tensor, which this one doesn't share.
  slot->pending = nullptr;
  slot->is_reserved = false;
  ++slot->version;
  ++generation_;
}

void Scope::Reserve(const std::string& name, Tensor tensor) {
  const bool is_new = !slots_.contains(name);
  const uint64_t before = generation_;
  // Not Set, which looks at elements: these have no values yet.
  Set(name, Tensor());
  Slot& slot = *slots_.find(name)->second;
  slot.tensor = std::move(tensor);
  slot.is_reserved = true;
  if (is_new) generation_ = before;
}

void Scope::Reveal(std::string_view name) {
  const auto it = slots_.find(name);
  SKIFF_ENFORCE(it != slots_.end(), kNotFound, "the scope holds no variable \"", name, "\"");
  it->second->is_reserved = false;
}

void Scope::Assign(const std::string& name, const Tensor& tensor) {
  CheckBoolsOf(name, tensor);
  const Tensor* held = Find(name);
  const bool fits = held != nullptr && held->has_data() && held->shape() == tensor.shape() &&
                    held->dtype() == tensor.dtype() && held->layout() == tensor.layout() &&
                    held->lod() == tensor.lod();  // plans know the LoDs of variables
  if (!fits) {
    Set(name, CopyToCpu(tensor));
    return;
  }
  Tensor* slot = FindMutable(name);
  CopyTensor(tensor, slot);
  // The storage stays, so the generation does, too; but forms derived from the values are out of
  // date.
  ++*Version(name);
  NoteWrite(*slot);
}

uint64_t* Scope::Version(std::string_view name) {
  const auto it = slots_.find(name);
  SKIFF_ENFORCE(it != slots_.end(), kNotFound, "the scope holds no variable \"", name, "\"");
  return &it->second->version;
}

void Scope::Erase(std::string_view name) {
  const auto it = slots_.find(name);
  if (it == slots_.end()) return;
  // No plan but the reserver's has a pointer to a reserved entry, and that one erases it itself.
  if (!Settled(*it->second).is_reserved) ++generation_;
  slots_.erase(it);
}

void Scope::SetPending(std::string_view name, PendingWrites* pending) {
  const auto it = slots_.find(name);
  SKIFF_ENFORCE(it != slots_.end(), kNotFound, "the scope holds no variable \"", name, "\"");
  Settled(*it->second).pending = pending;
}

void Scope::SetWork(PendingWrites* work) {
  if (work_ != nullptr && work_ != work) work_->Wait();
  work_ = work;
}

void Scope::ForgetWork(const PendingWrites* work) {
  if (work_ == work) work_ = nullptr;
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
