#include "framework/executor/run/body_memory.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/executor/run/derived_forms.h"
#include "framework/executor/run/loop_batch.h"
#include "framework/executor/storage/guarded_memory.h"
#include "framework/executor/storage/storage.h"
#include "framework/tensor/tensor_array.h"

namespace skiff {

BodyOffsets::BodyOffsets(const Loop& loop, const std::vector<PreparedKernel>& kernels)
    : end(RoundUp(loop.body.planned_bytes, kBufferAlignment)),
      host_end(RoundUp(loop.body.host_planned_bytes, kBufferAlignment)),
      is_guarded(loop.body.has_guards) {
  for (const LoopFeed& feed : loop.feeds) {
    const bool has_place = feed.kind == LoopFeed::Kind::kCarried && feed.stack < 0;
    carried.push_back(has_place ? Add(loop.body, feed.value) : -1);
  }
  for (const Instruction& instruction : loop.body.instructions) {
    if (!instruction.sets_rows) continue;
    for (const ValueId output : instruction.outputs) {
      const ValueId root = output ? loop.body.StorageOf(output) : ValueId();
      if (output == root && output && loop.body[root].storage == Storage::kStack) {
        unsized.emplace(root, Add(loop.body, root));
      }
    }
  }
  for (size_t i = 0; i < loop.body.instructions.size(); ++i) {
    if (loop.body.instructions[i].batching == Batching::kNone) continue;
    batches.emplace(i, Add(BatchLayout(loop, i).Bytes(loop.body), kBufferAlignment));
  }
  for (const PreparedKernel& kernel : kernels) {
    forms.push_back(Add(DerivedForms::BytesOfLoop(kernel.derived), kBufferAlignment));
  }
}

int64_t BodyOffsets::Add(const Plan& body, ValueId value) {
  const bool is_apart = body[value].place.is_cpu() && !body.place.is_cpu();
  const TensorMeta& meta = body[value].meta;
  if (!is_apart) {
    return Add(StorageBytes(body[value]), AlignmentOf(body, meta.dtype, meta.layout));
  }
  const int64_t place = host_end;
  host_end = AddCounts(host_end, StackSlotBytes(body[value]));
  return place;
}

int64_t BodyOffsets::Add(int64_t bytes, int64_t alignment) {
  if (is_guarded) {
    const int64_t place = PlaceGuarded(bytes, alignment, &end);
    used.push_back({place, place + bytes});
    return place;
  }
  const int64_t place = end;
  end = AddCounts(end, RoundUp(bytes, kBufferAlignment));
  return place;
}

BodyTensors::BodyTensors(const Loop& loop)
    : ValueTensors(loop.body.values.size()), loop_(loop), body_(loop.body) {
  for (const ValueId id : body_.ids()) {
    const PlanValue& value = body_[id];
    tensor_of_[id] = &tensors_[id];
    if (value.storage == Storage::kScope) continue;
    if (value.storage == Storage::kKernelOwned) {
      // The stack of a loop inside. If the gradient reads it, each iteration has one of its own.
      tensors_[id] = Tensor::OfArray(std::make_shared<TensorArray>(body_.place));
      continue;
    }
    const int64_t bytes = StorageBytes(value.meta.shape, value.meta.dtype, value.meta.layout);
    tensors_[id] =
        Tensor(value.meta.shape, value.meta.dtype,
               std::make_shared<Buffer>(nullptr, bytes, value.place), 0, value.meta.layout);
  }
}

void BodyTensors::Place(const KernelContext& outer, const BodyMemory& memory) {
  memory_ = memory;
  for (const LoopScopeValue& variable : loop_.scope_values) {
    const auto index = static_cast<size_t>(variable.index);
    if (variable.index < 0) {
      Tensor& array = own_arrays_[body_[variable.value].name];
      if (array.array() == nullptr) {
        array = Tensor::OfArray(std::make_shared<TensorArray>(body_.place));
      }
      tensor_of_[variable.value] = &array;
      continue;
    }
    tensor_of_[variable.value] = variable.is_output ? outer.outputs[index] : outer.inputs[index];
  }
  for (const ValueId id : body_.ids()) {
    // Stacked values have no place as yet, and those that are read for their shapes never have.
    const int64_t offset = body_[body_.StorageOf(id)].offset;
    if (body_[id].storage != Storage::kArena || offset < 0) continue;
    tensors_[id].Rebind(InArena(body_[id].place, offset));
  }
}

void BodyTensors::ReleaseInvariants() const {
  for (const LoopFeed& feed : loop_.feeds) {
    if (feed.kind == LoopFeed::Kind::kInvariant) *Of(feed.value) = Tensor();
  }
}

void BodyTensors::ClearOwnArrays() {
  for (auto& [name, array] : own_arrays_) array.array()->Clear();
}

void BodyTensors::ReleaseOutgrown(DeviceLink* link) {
  if (!link->has_device()) return;
  for (auto& [name, array] : own_arrays_) {
    if (!array.array()->HasOutgrown()) continue;
    link->Wait();
    array.array()->ReleaseOutgrown();
  }
}

void BodyTensors::SetPending(ValueId value, PendingWrites*) {
  Throw(ErrorCode::kUnimplemented, "\"", body_[value].name,
        "\" would be written in the background of a loop");
}

void CopyOnPlace(const Tensor& from, void* to, DeviceLink* link) {
  const auto bytes = static_cast<size_t>(from.byte_count());
  // A value that a carried one becomes may have been made in its place.
  if (bytes == 0 || from.raw_data() == to) return;
  if (from.place().is_cpu()) {
    std::memcpy(to, from.raw_data(), bytes);
  } else {
    link->stream().Copy(to, from.place(), from.raw_data(), from.place(), bytes);
  }
}

void ZeroOnPlace(Tensor* tensor, int64_t bytes, DeviceLink* link) {
  const auto count = static_cast<size_t>(bytes);
  const bool is_on_host = tensor->place().is_cpu();
  if (count > 0 && !is_on_host) link->stream().Fill(tensor->raw_data(), 0, count);
  if (count > 0 && is_on_host) std::memset(tensor->raw_data(), 0, count);
  // Row 0 would be one that has changed.
  if (tensor->is_selected_rows()) std::ranges::fill(tensor->rows(), -1);
}

}  // namespace skiff
