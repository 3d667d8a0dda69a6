#include "framework/executor/storage/flat_scope.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/analysis/flat_update.h"
#include "memory/places.h"

namespace skiff {
namespace {

int64_t AlignedUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Returns the tensors of a list, or none if they can't share one buffer.
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

// Returns where each tensor begins and, as the last element, the bytes of all of them.
std::vector<int64_t> OffsetsOf(const std::vector<const Tensor*>& tensors, int64_t alignment) {
  int64_t largest_bytes = 0;
  for (const Tensor* tensor : tensors) {
    largest_bytes = std::max(largest_bytes, tensor->byte_count());
  }
  alignment = FlatAlignment(alignment, largest_bytes, tensors.front()->dtype());
  std::vector<int64_t> offsets = {0};
  for (const Tensor* tensor : tensors) {
    offsets.push_back(AlignedUp(offsets.back() + tensor->byte_count(), alignment));
  }
  return offsets;
}

bool AreFlat(const std::vector<const Tensor*>& tensors, const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->buffer() != tensors.front()->buffer() ||
        tensors[i]->offset_bytes() != tensors.front()->offset_bytes() + offsets[i]) {
      return false;
    }
  }
  return true;
}

// Lays the lists of one program flat, one after the other, and remembers which buffers belong to
// finished lists. A variable may be in several lists; the first list decides where it is stored,
// since MayMove refuses to take a tensor out of a buffer of made_.
class Flattening {
 public:
  using Buffers = std::set<std::weak_ptr<Buffer>, std::owner_less<>>;

  // `movable`: buffers of several variables that a variable may be moved out of; nullptr: all.
  Flattening(Scope* scope, const Buffers* movable) : scope_(*scope), movable_(movable) {
    for (const std::string& name : scope_.Names()) ++uses_[scope_.Get(name).buffer().get()];
  }

  void LayList(const std::vector<std::string>& names, const std::vector<const Tensor*>& tensors,
               const std::vector<int64_t>& offsets) {
    if (AreFlat(tensors, offsets)) {
      made_.insert(tensors.front()->buffer());
    } else if (std::ranges::all_of(tensors, [&](const Tensor* t) { return MayMove(*t); })) {
      Move(names, tensors, offsets);
    }
  }

  // The buffers of the lists that are flat now.
  const Buffers& made() const { return made_; }

 private:
  bool MayMove(const Tensor& tensor) const {
    const std::shared_ptr<Buffer>& buffer = tensor.buffer();
    if (made_.contains(buffer)) return false;
    // If several variables share the buffer and this program didn't make it, another program did,
    // for lists of its own. Moving a variable out would make the two programs move it to and fro.
    return movable_ == nullptr || uses_.at(buffer.get()) == 1 || movable_->contains(buffer);
  }

  void Move(const std::vector<std::string>& names, const std::vector<const Tensor*>& tensors,
            const std::vector<int64_t>& offsets) {
    const auto buffer = std::make_shared<Buffer>(AllocatorOf(tensors.front()->place()),
                                                 offsets.back(), AllocationOptions{});
    // First all copies, then all assignments: an Error leaves the list as it was.
    std::vector<Tensor> views;
    for (size_t i = 0; i < tensors.size(); ++i) {
      Tensor& view =
          views.emplace_back(tensors[i]->shape(), tensors[i]->dtype(), buffer, offsets[i]);
      CopyTensor(*tensors[i], &view);
      view.set_lod(tensors[i]->lod());
    }
    for (size_t i = 0; i < names.size(); ++i) {
      --uses_[tensors[i]->buffer().get()];
      scope_.Set(names[i], std::move(views[i]));
    }
    made_.insert(buffer);
  }

  Scope& scope_;
  const Buffers* movable_;
  std::unordered_map<const Buffer*, int64_t> uses_;  // how many variables are in each
  Buffers made_;
};

}  // namespace

void FlatScope::Flatten(const OpRegistry& registry, const Program& program, int64_t alignment_bytes,
                        Scope* scope) {
  // The buffers are weak: the scope alone decides how long they live.
  std::erase_if(own_, [](const std::weak_ptr<Buffer>& buffer) { return buffer.expired(); });
  std::optional<Flattening> flattening;
  // Updates first: a sum of parameters (an average) has to take them where the update put them.
  for (const bool updates_parameters : {true, false}) {
    for (const auto& op : program.root()->ops()) {
      const OpDef* def = registry.Find(op->type);
      if (!IsFlatUpdate(def, *op) || UpdatesParameters(*op) != updates_parameters) continue;
      for (const StaticText slot : def->update->lists) {
        const std::vector<std::string>& names = op->Input(slot);
        const std::vector<const Tensor*> tensors = HeldTensors(program, *scope, names);
        if (tensors.size() < 2) continue;
        // Made only when needed, since the constructor walks the whole scope.
        if (!flattening.has_value()) flattening.emplace(scope, has_flattened_ ? &own_ : nullptr);
        flattening->LayList(names, tensors, OffsetsOf(tensors, alignment_bytes));
      }
    }
  }
  if (!flattening.has_value()) return;
  has_flattened_ = true;
  own_.insert(flattening->made().begin(), flattening->made().end());
}

}  // namespace skiff
