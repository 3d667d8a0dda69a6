#include "framework/executor/run/loop_stacks.h"

#include <algorithm>

#include "framework/tensor/tensor_array.h"

namespace skiff {
namespace {

char* InputSlot(const KernelContext& context, int input, int64_t slot, int64_t slot_bytes) {
  const Tensor& stack = context.input(input);
  if (stack.array() != nullptr) return static_cast<char*>(stack.array()->At(slot).raw_data());
  return static_cast<char*>(const_cast<void*>(stack.raw_data())) + slot * slot_bytes;
}

}  // namespace

bool CountsBefore(const Loop& loop) { return loop.iterations >= 0 || loop.condition_input >= 0; }

LoopStacks::LoopStacks(const Loop& loop, const BodyOffsets& offsets, const LoopRows* rows,
                       BodyTensors* tensors, DeviceLink* link)
    : loop_(loop),
      body_(loop.body),
      offsets_(offsets),
      rows_(rows),
      tensors_(*tensors),
      link_(*link) {
  for (const LoopStash& stash : loop_.stashes) {
    for (const ValueId id : body_.ids()) {
      if (body_.StorageOf(id) != stash.value) continue;
      stashed_.push_back({id, stash, rows_ != nullptr && rows_->Varies(stash.value)});
    }
  }
}

bool LoopStacks::IsStash(ValueId value) const {
  return std::ranges::count(loop_.stashes, value, &LoopStash::value) > 0;
}

bool LoopStacks::Moves(ValueId value) const {
  if (!value) return false;
  if (body_[body_.StorageOf(value)].storage == Storage::kStack || IsStash(value)) return true;
  const auto feed = std::ranges::find(loop_.feeds, value, &LoopFeed::value);
  return feed != loop_.feeds.end() && (feed->kind == LoopFeed::Kind::kPart || feed->stack >= 0);
}

char* LoopStacks::PartOf(const KernelContext& context, const LoopFeed& feed, int64_t t) const {
  const void* stack = context.input(feed.input).raw_data();
  return static_cast<char*>(const_cast<void*>(stack)) + t * tensors_.Of(feed.value)->byte_count();
}

void LoopStacks::MoveParts(const KernelContext& context, int64_t t) const {
  for (const LoopFeed& feed : loop_.feeds) {
    if (feed.kind != LoopFeed::Kind::kPart) continue;
    tensors_.Of(feed.value)->Rebind(PartOf(context, feed, t));
  }
}

char* LoopStacks::OutputSlot(const KernelContext& context, int output, int64_t slot,
                             int64_t slot_bytes) const {
  if (CountsBefore(loop_)) {
    return static_cast<char*>(context.output(output).raw_data()) + slot * slot_bytes;
  }
  return static_cast<char*>(
      context.output(output).array()->Make(slot, Shape({slot_bytes}), DType::kUint8).raw_data());
}

char* LoopStacks::CarriedSlot(const KernelContext& context, const LoopFeed& feed,
                              int64_t slot) const {
  return OutputSlot(context, feed.stack, slot, StackSlotBytes(body_[feed.value]));
}

void LoopStacks::StartIteration() {
  for (Stashed& stashed : stashed_) stashed.is_placed = false;
}

void LoopStacks::Place(const KernelContext& context, int64_t slot) {
  for (const Stashed& stashed : stashed_) {
    if (stashed.value == stashed.stash.value && !stashed.is_placed) {
      PlaceRoot(context, slot, stashed);
    }
  }
}

void LoopStacks::PlaceRoot(const KernelContext& context, int64_t slot, const Stashed& stashed) {
  const auto [root, index, shift] = stashed.stash;
  if (body_[root].storage == Storage::kKernelOwned) {
    // The stack of a loop inside: an array of this iteration's own.
    TensorArray& arrays =
        *(loop_.is_gradient ? context.input(index) : context.output(index)).array();
    *tensors_.Of(root) = Tensor::OfArray(arrays.Nested(slot));
    return;
  }
  if (loop_.is_gradient) {
    // The gradient half may overwrite a slot that it has read: nobody else will.
    return MoveToSlot(root, InputSlot(context, index, slot + shift, StackSlotBytes(body_[root])));
  }
  const auto unsized = offsets_.unsized.find(root);
  if (unsized != offsets_.unsized.end() && !CountsBefore(loop_)) {
    // Until its kernel has run.
    return Point(root, tensors_.InArena(body_[root].place, unsized->second));
  }
  const bool is_exact = stashed.varies && !CountsBefore(loop_);
  if (is_exact && !rows_->Knows(root)) return;
  const int64_t bytes = is_exact ? tensors_.Of(root)->byte_count() : StackSlotBytes(body_[root]);
  MoveToSlot(root, OutputSlot(context, index, slot + shift, bytes));
}

void LoopStacks::KeepUnsized(const KernelContext& context, int64_t slot,
                             const Instruction& instruction) {
  for (const ValueId output : instruction.outputs) {
    if (!output || !offsets_.unsized.contains(output) || CountsBefore(loop_)) continue;
    const Tensor& tensor = *tensors_.Of(output);
    const auto stashed = std::ranges::find(stashed_, output, &Stashed::value);
    char* data = OutputSlot(context, stashed->stash.index, slot, tensor.byte_count());
    CopyOnPlace(tensor, data, &link_);
    MoveToSlot(output, data);
  }
}

void LoopStacks::Point(ValueId root, void* data) const {
  for (const Stashed& stashed : stashed_) {
    if (stashed.stash.value == root) tensors_.Of(stashed.value)->Rebind(data);
  }
}

void LoopStacks::MoveToSlot(ValueId root, void* data) {
  Point(root, data);
  for (Stashed& stashed : stashed_) {
    if (stashed.stash.value == root) stashed.is_placed = true;
  }
}

}  // namespace skiff
