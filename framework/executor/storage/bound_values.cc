#include "framework/executor/storage/bound_values.h"

#include <cstring>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"
#include "framework/executor/device/device_link.h"
#include "framework/executor/storage/guarded_memory.h"
#include "framework/executor/storage/scope_overlap.h"
#include "framework/executor/storage/storage.h"
#include "framework/tensor/tensor_array.h"
#include "memory/allocator.h"

namespace skiff {
namespace {

// Returns the name of an array in the scope. Plans may have it on several places.
std::string NameOfArray(const PlanValue& array) {
  return array.place.is_cpu() ? array.name : StrCat(array.name, "@", array.place);
}

// Returns the variables of the scope that loops and branches write. If no iteration runs, nothing
// does.
std::unordered_set<std::string_view> WrittenByLoops(const Plan& plan) {
  std::unordered_set<std::string_view> names;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind != InstructionKind::kLoop) continue;
    for (const ValueId output : instruction.outputs) {
      if (output && plan[output].storage == Storage::kScope) names.insert(plan[output].name);
    }
  }
  return names;
}

void FillWithZeros(Tensor* tensor) {
  Tensor zeros(tensor->shape(), tensor->dtype());
  if (zeros.byte_count() == 0) return;
  std::memset(zeros.raw_data(), 0, static_cast<size_t>(zeros.byte_count()));
  CopyTensor(zeros, tensor);
}

}  // namespace

// Resolves each value to one Tensor*, once: a view into the arena, the scope's own tensor, or an
// empty tensor that the feed fills later. Kernels keep these pointers, so a step looks up nothing.
// The tables never grow after this, and entries of the scope have stable addresses.
BoundValues::BoundValues(const Plan& plan, Scope* scope, std::shared_ptr<SharedArena> arena)
    : ValueTensors(plan.values.size()), plan_(plan), scope_(*scope), arena_(std::move(arena)) {
  ReserveArenas();
  try {
    // First, since FindMutable below must find the reserved tensors, too.
    ReservePersistables();
    for (const ValueId id : plan.ids()) {
      const PlanValue& value = plan[id];
      tensor_of_[id] = &tensors_[id];
      if (value.storage == Storage::kScope) {
        tensor_of_[id] = scope->FindMutable(value.meta.is_array ? NameOfArray(value) : value.name);
      } else if (value.storage == Storage::kArena) {
        const int64_t offset = plan[plan.StorageOf(id)].offset;
        if (offset < 0) continue;  // nothing writes it any more
        tensors_[id] = Tensor(value.meta.shape, value.meta.dtype, MemoryOf(value.place), offset,
                              value.meta.layout);
      }
    }
    BindStacks();
    // Last, since it needs every variable of the plan in the scope.
    CheckScopeOverlap(plan, *scope);
    // The destructor doesn't run for a constructor that throws.
  } catch (...) {
    EraseHidden();
    throw;
  }
  for (const Instruction& instruction : plan.instructions) {
    for (const ValueId output : instruction.outputs) {
      if (!output || plan[output].storage != Storage::kScope || plan[output].meta.is_array)
        continue;
      written_.emplace(plan[output].name, Of(output));
    }
  }
}

BoundValues::~BoundValues() {
  try {
    EraseHidden();
  } catch (const Error&) {
    // Of another executor's work, which the scope has waited for. The next access says so as well.
  }
}

void BoundValues::ClearArrays(DeviceLink* link) const {
  for (const ValueId id : plan_.ids()) {
    TensorArray* array = plan_[id].meta.is_array ? Of(id)->array() : nullptr;
    if (array == nullptr) continue;
    if (plan_[id].storage == Storage::kScope) array->Clear();
    if (!link->has_device() || !array->HasOutgrown()) continue;
    link->Wait();
    array->ReleaseOutgrown();
  }
}

bool BoundValues::ReserveArenas() {
  if (plan_.has_guards) {
    // Of its own: the guards are where this plan's values end.
    if (memory_ != nullptr) return false;
    memory_ = host_memory_ =
        GuardedMemory(plan_.planned_bytes, UsedRanges(plan_), MemoryTag::kArena);
    return true;
  }
  arena_->Reserve(plan_.place, plan_.planned_bytes);
  arena_->Reserve(Place::Cpu(), plan_.host_planned_bytes);
  const std::shared_ptr<Buffer>& memory = arena_->memory(plan_.place);
  const std::shared_ptr<Buffer>& host_memory = arena_->memory(Place::Cpu());
  if (memory_ == memory && host_memory_ == host_memory) return false;
  memory_ = memory;
  host_memory_ = host_memory;
  return true;
}

bool BoundValues::FollowArena() {
  if (!ReserveArenas()) return false;
  for (const ValueId id : plan_.ids()) {
    Tensor& tensor = tensors_[id];
    if (plan_[id].storage != Storage::kArena || !tensor.has_data()) continue;
    std::shared_ptr<const LoD> lod = tensor.shared_lod();
    tensor = Tensor(tensor.shape(), tensor.dtype(), MemoryOf(plan_[id].place),
                    tensor.offset_bytes(), tensor.layout());
    tensor.ShareLoD(std::move(lod));
  }
  return true;
}

// The position tells the stacks of one segment from those of another.
void BoundValues::BindStacks() {
  for (const Instruction& instruction : plan_.instructions) {
    if (instruction.kind != InstructionKind::kLoop) continue;
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      const ValueId output = instruction.outputs[i];
      if (!output || plan_[output].storage != Storage::kKernelOwned) continue;
      const std::string name = StrCat(instruction.position, "/", i);
      tensors_[output] = Tensor::OfArray(arena_->Array(name, plan_[output].place));
    }
  }
}

void BoundValues::ReservePersistables() {
  const std::unordered_set<std::string_view> written_by_loops = WrittenByLoops(plan_);
  std::unordered_set<std::string_view> names;
  for (const PlanValue& value : plan_.values) {
    if (value.storage != Storage::kScope || !names.insert(value.name).second) continue;
    // Find hides what another plan has reserved. Reserve replaces that tensor and advances the
    // generation, so that the other plan is no longer current.
    if (value.meta.is_array) {
      // All plans share it. Nobody else sees it.
      const Tensor* known = scope_.FindMutable(value.name);
      SKIFF_ENFORCE(known == nullptr || known->array() != nullptr, kFailedPrecondition,
                    "the scope holds a tensor named \"", value.name,
                    "\", which is an array of the program: expected another name");
      const std::string name = NameOfArray(value);
      if (scope_.FindMutable(name) != nullptr) continue;
      scope_.Reserve(name, Tensor::OfArray(std::make_shared<TensorArray>(value.place)));
      continue;
    }
    if (scope_.Find(value.name) != nullptr) continue;
    Tensor tensor = NewVariable(value);
    if (written_by_loops.contains(value.name)) FillWithZeros(&tensor);
    hidden_.push_back({value.name, tensor.buffer()});
    scope_.Reserve(value.name, std::move(tensor));
  }
}

Tensor BoundValues::NewVariable(const PlanValue& value) const {
  const TensorMeta& meta = value.meta;
  if (!plan_.has_guards) return Tensor(meta.shape, meta.dtype, value.place);
  return Tensor(meta.shape, meta.dtype,
                GuardedBlock(StorageBytes(value), AlignmentOf(plan_, meta.dtype, meta.layout)));
}

void BoundValues::Reveal() {
  for (const Hidden& hidden : hidden_) scope_.Reveal(hidden.name);
  revealed_ = std::exchange(hidden_, {});
}

void BoundValues::UndoReveal() { hidden_ = std::exchange(revealed_, {}); }

// Compares buffers, since another plan, a Set or a loaded file may have taken the name since. That
// tensor isn't ours to erase.
bool BoundValues::EraseHidden() {
  const bool had_any = !hidden_.empty();
  for (const Hidden& hidden : hidden_) {
    const Tensor* tensor = scope_.FindMutable(hidden.name);
    if (tensor != nullptr && tensor->buffer() == hidden.buffer) scope_.Erase(hidden.name);
  }
  hidden_.clear();
  return had_any;
}

void BoundValues::SetPending(ValueId value, PendingWrites* pending) {
  pending_[Of(value)] = pending;
  scope_.SetPending(plan_[value].name, pending);
}

void BoundValues::Await(const Tensor& tensor) const {
  const auto found = pending_.find(&tensor);
  if (found != pending_.end()) found->second->Wait();
}

}  // namespace skiff
