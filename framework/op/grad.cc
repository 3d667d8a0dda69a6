#include "framework/op/grad.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/op_context.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {

std::vector<std::string> GradContext::InputGrad(std::string_view slot) const {
  std::vector<std::string> names;
  for (const std::string& x : Input(slot)) {
    names.push_back(wants_grad_(x) ? GradName(x) : std::string(kEmptyVarName));
  }
  return names;
}

std::vector<std::string> GradContext::OutputGrad(std::string_view slot) const {
  std::vector<std::string> names;
  for (const std::string& y : Output(slot)) names.push_back(GradName(y));
  return names;
}

GradRule GradOp(StaticText type, std::vector<StaticText> inputs, std::vector<StaticText> outputs) {
  // The rule is made once per op type and called for each op, so it owns its slots.
  return [type, inputs = std::move(inputs),
          outputs = std::move(outputs)](const GradContext& context) {
    Op op(type);
    // All attributes, also those that the gradient op's definition lacks: Fluid's programs have
    // them, too, and CheckOp ignores them.
    op.attrs = context.forward().attrs;
    for (const StaticText slot : inputs) {
      if (slot.ends_with(kGradSuffix)) {
        op.SetInput(slot, context.OutputGrad(ForwardName(slot)));
        continue;
      }
      // An input and an output may have one name (in place, such as Mean); then the input is meant.
      const bool is_input = context.def().FindInput(slot) != nullptr;
      const std::vector<std::string>& names = is_input ? context.Input(slot) : context.Output(slot);
      if (!names.empty()) op.SetInput(slot, names);
    }
    for (const StaticText slot : outputs) {
      if (!context.Input(ForwardName(slot)).empty()) {
        op.SetOutput(slot, context.InputGrad(ForwardName(slot)));
      }
    }
    return std::vector<Op>{std::move(op)};
  };
}

namespace {

const SlotDef& ForwardSlot(const OpDef& forward, const SlotDef* slot, StaticText name) {
  SKIFF_ENFORCE(slot != nullptr, kInvalidArgument, "op \"", forward.type,
                "\": its gradient op can't have the slot \"", name, "\"");
  return *slot;
}

SlotDef ReadSlot(const OpDef& forward, const GradientRead& read, bool is_only_gradient) {
  if (read.slot.ends_with(kGradSuffix)) {
    const std::string_view name = ForwardName(read.slot);
    const SlotDef& output = ForwardSlot(forward, forward.FindOutput(name), read.slot);
    return {.name = read.slot,
            .doc = StrCat("The gradient of ", name, "."),
            .duplicable = output.duplicable,
            .dispensable = read.is_optional || (output.dispensable && !is_only_gradient),
            .shape_only = read.shape_only,
            .checks_data = read.checks_data,
            .array = output.array,
            .keeps_float32 = output.keeps_float32};
  }
  const SlotDef* input = forward.FindInput(read.slot);
  SlotDef slot =
      ForwardSlot(forward, input != nullptr ? input : forward.FindOutput(read.slot), read.slot);
  slot.doc = StrCat("Of ", forward.type, ".");
  // The forward op needn't write an output that this one needs.
  slot.dispensable = read.is_optional || (slot.dispensable && input != nullptr);
  slot.intermediate = false;
  slot.selected_rows = false;
  slot.shape_only = slot.shape_only || read.shape_only;
  slot.checks_data = (slot.checks_data || read.checks_data) && !slot.shape_only;
  return slot;
}

SlotDef WrittenSlot(const OpDef& forward, StaticText write, bool is_one_of_several) {
  const std::string_view name = ForwardName(write);
  const SlotDef& input = ForwardSlot(forward, forward.FindInput(name), write);
  return {.name = write,
          .doc = StrCat("The gradient of ", name, "."),
          .duplicable = input.duplicable,
          .dispensable = input.dispensable || is_one_of_several,
          .array = input.array,
          .keeps_float32 = input.keeps_float32 || !input.attribute.empty()};
}

// The shape rule of a gradient op that reads all inputs of the forward op.
class GradientRule {
 public:
  GradientRule(const OpDef& forward, const std::vector<GradientRead>& reads) {
    for (const GradientRead& read : reads) {
      if (read.of_any_rank) of_any_rank_.push_back(read.slot);
    }
    auto copy = std::make_shared<OpDef>(forward);
    // It would hold itself.
    copy->grad = nullptr;
    forward_ = std::move(copy);
  }

  void operator()(OpContext& context) const {
    CheckOutputs(context);
    for (const SlotDef& slot : context.def().outputs) {
      for (size_t i = 0; i < context.OutputCount(slot.name); ++i) {
        if (context.OutputIndex(slot.name, i) < 0) continue;
        context.SetOutputLike(slot.name, ForwardName(slot.name), i);
      }
    }
  }

 private:
  // Compares outputs, and their gradients, with what the forward op would make of the inputs.
  void CheckOutputs(const OpContext& context) const {
    // Named as this op in messages.
    Op op(context.op().type);
    op.attrs = context.op().attrs;
    std::vector<TensorMeta> inputs;
    for (const SlotDef& slot : forward_->inputs) {
      op.SetInput(slot.name, context.op().Input(slot.name));
      for (size_t i = 0; i < context.InputCount(slot.name); ++i) {
        const bool is_given = context.InputIndex(slot.name, i) >= 0;
        inputs.push_back(is_given ? context.Input(slot.name, i) : TensorMeta{});
      }
    }
    size_t outputs = 0;
    for (const SlotDef& slot : forward_->outputs) {
      const size_t count =
          std::max(context.InputCount(slot.name), context.InputCount(GradName(slot.name)));
      op.SetOutput(slot.name, std::vector<std::string>(count, std::string(slot.name)));
      outputs += count;
    }
    OpContext forward(op, *forward_, std::move(inputs), std::vector<TensorMeta>(outputs));
    InferOutputs(&forward);
    for (const SlotDef& slot : forward_->outputs) {
      for (size_t i = 0; i < forward.OutputCount(slot.name); ++i) {
        const TensorMeta& expected = forward.Output(slot.name, i);
        CheckLike(context, GradName(slot.name), i, expected);
        // An input may have the same name.
        if (forward_->FindInput(slot.name) == nullptr) CheckLike(context, slot.name, i, expected);
      }
    }
  }

  void CheckLike(const OpContext& context, std::string_view slot, size_t i,
                 const TensorMeta& expected) const {
    if (i >= context.InputCount(slot) || context.InputIndex(slot, i) < 0) return;
    if (std::ranges::count(of_any_rank_, slot) > 0) {
      return CheckGradient(context, slot, i, expected);
    }
    const TensorMeta& found = context.Input(slot, i);
    if (found.is_array || expected.is_array) return;
    SKIFF_ENFORCE(DimsAgree(found.dense_shape().dims(), expected.dense_shape().dims()) &&
                      found.dtype == expected.dtype,
                  kInvalidArgument, context.op().type, ": ", slot, " is ", found.dtype, " ",
                  found.dense_shape(), ", expected ", expected.dtype, " ", expected.dense_shape());
  }

  std::shared_ptr<const OpDef> forward_;
  std::vector<StaticText> of_any_rank_;
};

}  // namespace

OpDef GradientOf(OpDef* forward, std::vector<GradientRead> reads, std::vector<StaticText> writes) {
  OpDef gradient;
  gradient.type = StrCat(forward->type, "_grad");
  gradient.attrs = forward->attrs;
  gradient.precision = forward->precision;
  gradient.no_gradient_reason = "second derivatives are not provided";
  const auto gradients = std::ranges::count_if(
      reads, [](const GradientRead& read) { return read.slot.ends_with(kGradSuffix); });
  std::vector<StaticText> read_slots;
  for (const GradientRead& read : reads) {
    read_slots.push_back(read.slot);
    gradient.inputs.push_back(ReadSlot(*forward, read, gradients == 1));
    const bool is_gradient = read.slot.ends_with(kGradSuffix);
    if (is_gradient && gradient.kernel_dtype_slot.empty()) gradient.kernel_dtype_slot = read.slot;
    if (gradient.inputs.back().checks_data) gradient.data_checked_by = forward->type;
  }
  for (const StaticText write : writes) {
    gradient.outputs.push_back(WrittenSlot(*forward, write, writes.size() > 1));
  }
  const bool reads_all = std::ranges::all_of(forward->inputs, [&](const SlotDef& slot) {
    return gradient.FindInput(slot.name) != nullptr;
  });
  if (reads_all && forward->infer != nullptr) gradient.infer = GradientRule(*forward, reads);
  forward->grad = GradOp(gradient.type, std::move(read_slots), std::move(writes));
  return gradient;
}

FlopRule GradFlop(FlopRule forward, std::vector<StaticText> outputs) {
  return [forward = std::move(forward), outputs = std::move(outputs)](const OpContext& context) {
    const auto made =
        std::ranges::count_if(outputs, [&](StaticText slot) { return context.HasOutput(slot); });
    return static_cast<double>(made) * forward(context);
  };
}

}  // namespace skiff
