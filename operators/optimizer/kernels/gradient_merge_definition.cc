#include "operators/optimizer/kernels/gradient_merge_definition.h"

#include "framework/base/error.h"

namespace skiff {

SlotDef RoundCountSlot() {
  return {.name = "Count",
          .doc =
              "int64 of one element: the gradients of the round, with this one. 1 begins a "
              "round, `steps` or more end it."};
}

std::vector<AttrDef> RoundAttrs() {
  return {{.name = "steps",
           .type = AttrType::kLong,
           .default_value = int64_t{1},
           .doc = "Runs of a round, at least 1."},
          {.name = "mean",
           .type = AttrType::kBool,
           .default_value = true,
           .doc = "Whether the last run of a round divides the sum by Count."}};
}

void CheckRound(const OpContext& context) {
  const TensorMeta& count = context.Input("Count");
  SKIFF_ENFORCE(
      count.dtype == DType::kInt64 && (!count.shape.is_known() || count.shape.element_count() == 1),
      kInvalidArgument, context.op().type, ": Count is ", count.dtype, " ", count.shape,
      ", expected one int64");
  SKIFF_ENFORCE(context.IntAttr("steps") > 0, kInvalidArgument, context.op().type,
                ": steps = ", context.IntAttr("steps"), ", expected a positive number");
}

Round::Round(const OpContext& context)
    : count_(context, "Count"),
      steps_(context.IntAttr("steps")),
      mean_(context.Attr<bool>("mean")) {}

RoundPosition Round::Position(const KernelContext& run) const {
  const auto count = *count_(run);
  RoundPosition position{.is_first = count <= 1, .is_last = count >= steps_};
  // By Count, not by `steps`: they differ if the round began with another number of steps.
  if (position.is_last && mean_) position.factor = 1.0 / static_cast<double>(count);
  return position;
}

}  // namespace skiff
