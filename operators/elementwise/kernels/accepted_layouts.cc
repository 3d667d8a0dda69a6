#include "operators/elementwise/kernels/accepted_layouts.h"

#include <algorithm>

#include "framework/tensor/layout.h"

namespace skiff {
namespace {

// Calls visit(meta) for each slot that is present, until it returns false. Returns whether all
// returned true.
template <typename Visit>
bool AllOfSlots(const OpContext& context, const std::vector<StaticText>& slots,
                const Visit& visit) {
  return std::all_of(slots.begin(), slots.end(), [&](StaticText slot) {
    const bool is_input = context.def().FindInput(slot) != nullptr;
    const bool present = is_input ? context.HasInput(slot) : context.HasOutput(slot);
    return !present || visit(is_input ? context.Input(slot) : context.Output(slot));
  });
}

}  // namespace

bool SameShapeAndLayout(const OpContext& context, const std::vector<StaticText>& slots) {
  const TensorMeta* first = nullptr;
  return AllOfSlots(context, slots, [&](const TensorMeta& meta) {
    if (first == nullptr) first = &meta;
    return meta.layout == first->layout && meta.shape == first->shape;
  });
}

bool SlotsArePlain(const OpContext& context, const std::vector<StaticText>& slots) {
  return AllOfSlots(context, slots, [](const TensorMeta& meta) { return meta.layout.is_plain(); });
}

int64_t StorageElements(const Tensor& tensor) {
  return StorageElements(tensor.shape(), tensor.layout());
}

}  // namespace skiff
