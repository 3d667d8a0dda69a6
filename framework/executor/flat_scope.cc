#include "framework/executor/flat_scope.h"

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "memory/allocator.h"

namespace skiff {
namespace {

int64_t AlignedUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The tensors of a list; empty if they can't lie in one buffer.
std::vector<const Tensor*> HeldTensors(const Program& program, const Scope& scope,
                                       const std::vector<std::string>& names) {
  std::vector<const Tensor*> tensors;
  for (const std::string& name : names) {
    const Var* var = program.root()->FindVar(name);
    const Tensor* tensor = scope.Find(name);
    if (var == nullptr || !var->persistable || tensor == nullptr || !tensor->has_data()) return {};
    const bool is_alike = tensors.empty() || (tensor->dtype() == tensors.front()->dtype() &&
                                              tensor->place() == tensors.front()->place());
    if (!is_alike || !tensor->layout().is_plain()) return {};
    tensors.push_back(tensor);
  }
  return tensors;
}

// Where each tensor begins, and at the end the bytes of all.
std::vector<int64_t> OffsetsOf(const std::vector<const Tensor*>& tensors, int64_t alignment) {
  std::vector<int64_t> offsets = {0};
  for (const Tensor* tensor : tensors) {
    offsets.push_back(AlignedUp(offsets.back() + tensor->byte_count(), alignment));
  }
  return offsets;
}

bool LieFlat(const std::vector<const Tensor*>& tensors, const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->buffer() != tensors.front()->buffer() ||
        tensors[i]->offset_bytes() != tensors.front()->offset_bytes() + offsets[i]) {
      return false;
    }
  }
  return true;
}

void FlattenList(const std::vector<std::string>& names, const std::vector<const Tensor*>& tensors,
                 const std::vector<int64_t>& offsets, Scope* scope) {
  const auto buffer = std::make_shared<Buffer>(AllocatorOf(tensors.front()->place()),
                                               offsets.back(), AllocationOptions{});
  std::vector<Tensor> views;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor& view = views.emplace_back(tensors[i]->shape(), tensors[i]->dtype(), buffer, offsets[i]);
    CopyTensor(*tensors[i], &view);
    view.set_lod(tensors[i]->lod());
  }
  for (size_t i = 0; i < names.size(); ++i) scope->Set(names[i], std::move(views[i]));
}

}  // namespace

void FlattenScope(const OpRegistry& registry, const Program& program, int64_t alignment_bytes,
                  Scope* scope) {
  for (const auto& op : program.root()->ops()) {
    if (!op->Attr<bool>(kIsFlatAttr, false)) continue;
    const OpDef& def = registry.Get(op->type);
    for (const std::string& slot : def.update->lists) {
      const std::vector<std::string>& names = op->Input(slot);
      const std::vector<const Tensor*> tensors = HeldTensors(program, *scope, names);
      if (tensors.size() < 2) continue;
      const std::vector<int64_t> offsets = OffsetsOf(tensors, alignment_bytes);
      if (!LieFlat(tensors, offsets)) FlattenList(names, tensors, offsets, scope);
    }
  }
}

}  // namespace skiff
