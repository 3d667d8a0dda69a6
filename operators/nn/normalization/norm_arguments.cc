#include "operators/nn/normalization/norm_arguments.h"

#include "framework/base/error.h"
#include "operators/common/input_checks.h"

namespace skiff {

AttrDef EpsilonAttr() {
  return {.name = "epsilon",
          .type = AttrType::kFloat,
          .default_value = 1e-5f,
          .doc = "Added to the variance.",
          .accepts = [](const Attribute& value) { return std::get<float>(value) >= 0; },
          .expected = "at least 0"};
}

AttrDef ReluTypeAttr() { return ChoiceAttr("act_type", "relu", {"relu"}, "The activation: relu."); }

void CheckVectors(const OpContext& context, std::initializer_list<const char*> slots, int64_t size,
                  const char* meaning) {
  const StaticText first = context.def().inputs[0].name;
  const TensorMeta& x = context.Input(first);
  for (const char* slot : slots) {
    if (!context.HasInput(slot)) continue;
    const TensorMeta& meta = context.Input(slot);
    const bool fits =
        meta.shape.rank() == 1 && (meta.shape[0] == size || meta.shape[0] == -1 || size == -1);
    SKIFF_ENFORCE(fits, kInvalidArgument, context.op().type, ": ", slot, " of shape ", meta.shape,
                  ", expected [", size, "], one value for each ", meaning, " of ", first,
                  " of shape ", x.shape);
    CheckInputLike(context, slot, meta.shape, x.dtype);
  }
}

}  // namespace skiff
