#include "framework/op/half_arguments.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"

namespace skiff {
namespace {

// Calls use(slot, i, meta) for each argument of the op, `i` counting within its slot.
template <typename Use>
void ForEachArgument(const Op& op, const std::vector<SlotDef>& slots,
                     const std::vector<std::string>& (Op::*arguments)(std::string_view) const,
                     std::span<const TensorMeta> metas, const Use& use) {
  size_t index = 0;
  for (const SlotDef& slot : slots) {
    const std::vector<std::string>& names = (op.*arguments)(slot.name);
    for (size_t i = 0; i < names.size(); ++i, ++index) {
      if (names[i] != kEmptyVarName) use(slot, i, metas[index]);
    }
  }
}

template <typename Use>
void ForEachInput(const OpContext& context, const Use& use) {
  ForEachArgument(context.op(), context.def().inputs, &Op::Input, context.inputs(), use);
}

template <typename Use>
void ForEachOutput(const OpContext& context, const Use& use) {
  ForEachArgument(context.op(), context.def().outputs, &Op::Output, context.outputs(), use);
}

// Returns the dtype of the float inputs that decide, or float32 if there are none. Throws Error if
// one of them is half and another one has another dtype.
DType DTypeOfInputs(const OpContext& context) {
  const SlotDef* first = nullptr;
  DType dtype = DType::kFloat32;
  ForEachInput(context, [&](const SlotDef& slot, size_t, const TensorMeta& meta) {
    if (!FollowsHalf(slot) || !IsFloat(meta.dtype)) return;
    const bool fits =
        first == nullptr || meta.dtype == dtype || (!IsHalf(meta.dtype) && !IsHalf(dtype));
    SKIFF_ENFORCE(fits, kInvalidArgument, context.op().type, ": ", slot.name, " is ", meta.dtype,
                  ", expected ", dtype, ", as ", first->name, " is");
    if (first == nullptr) dtype = meta.dtype;
    if (first == nullptr) first = &slot;
  });
  return dtype;
}

// `dtype` is that of the float inputs. Throws Error if an attribute names another one and either of
// them is half: an op doesn't convert before or after.
void CheckNamedDTypes(const OpContext& context, DType dtype) {
  for (const AttrDef& attr : context.def().attrs) {
    if (!attr.names_dtype) continue;
    const int64_t named = context.IntAttr(attr.name);
    const auto is_half = IsDType(static_cast<int32_t>(named)) && IsHalf(static_cast<DType>(named));
    SKIFF_ENFORCE(named < 0 || named == static_cast<int64_t>(dtype) || (!is_half && !IsHalf(dtype)),
                  kUnimplemented, context.op().type, ": ", attr.name, " = ", named,
                  ", expected -1 or ", static_cast<int32_t>(dtype), " (", dtype,
                  "), the dtype of the inputs; cast before");
  }
}

// Returns the dtype of the first input that decides, float32 if there is none.
DType FirstDType(const OpContext& context) {
  std::optional<DType> first;
  ForEachInput(context, [&](const SlotDef& slot, size_t, const TensorMeta& meta) {
    if (FollowsHalf(slot) && !first) first = meta.dtype;
  });
  return first.value_or(DType::kFloat32);
}

// Returns the dtype of an output that is float32 by the shape rule, where the inputs that decide
// have `dtype`.
DType NarrowedDType(const OpContext& context, const SlotDef& slot, size_t i, DType dtype) {
  const std::string_view of = ForwardName(slot.name);
  const SlotDef* input = of.empty() ? nullptr : context.def().FindInput(of);
  if (input != nullptr && !input->shape_only && context.InputIndex(of, i) >= 0) {
    return context.Input(of, i).dtype;
  }
  if (!slot.keeps_float32) return IsHalf(dtype) ? dtype : DType::kFloat32;
  for (const auto& [before, next] : context.def().in_place) {
    if (next == slot.name && context.InputIndex(before, i) >= 0) {
      return context.Input(before, i).dtype;
    }
  }
  return DType::kFloat32;
}

std::vector<TensorMeta> WidenedMetas(std::span<const TensorMeta> metas) {
  std::vector<TensorMeta> wide(metas.begin(), metas.end());
  for (TensorMeta& meta : wide) {
    if (IsHalf(meta.dtype)) meta.dtype = DType::kFloat32;
  }
  return wide;
}

}  // namespace

bool IsWidened(const OpContext& context) {
  if (context.def().precision == Precision::kNone || context.def().block != nullptr) return false;
  return std::ranges::none_of(context.inputs(), &TensorMeta::is_array) &&
         std::ranges::none_of(context.outputs(), &TensorMeta::is_array);
}

bool FollowsHalf(const SlotDef& slot) {
  return !slot.shape_only && !slot.keeps_float32 && slot.attribute.empty();
}

std::optional<DType> HalfOfArguments(const OpContext& context) {
  std::optional<DType> half;
  if (!IsWidened(context)) return half;
  const auto note = [&](const SlotDef& slot, size_t, const TensorMeta& meta) {
    if (!slot.shape_only && IsHalf(meta.dtype) && !half) half = meta.dtype;
  };
  ForEachInput(context, note);
  ForEachOutput(context, note);
  return half;
}

bool HasDTypesOfHalfKernel(const OpContext& context) {
  if (!IsWidened(context)) return true;
  bool has = true;
  const auto check = [&](const SlotDef& slot, size_t, const TensorMeta& meta) {
    if (slot.shape_only || !IsFloat(meta.dtype)) return;
    has = has && IsHalf(meta.dtype) != slot.keeps_float32;
  };
  ForEachInput(context, check);
  ForEachOutput(context, check);
  return has;
}

std::string NamedDType(const OpDef& def, const Op& op) {
  for (const AttrDef& attr : def.attrs) {
    if (!attr.names_dtype) continue;
    const int32_t otherwise = attr.default_value ? std::get<int32_t>(*attr.default_value) : -1;
    if (op.Attr<int32_t>(attr.name, otherwise) >= 0) return std::string(attr.name);
  }
  return {};
}

OpContext Widened(const OpContext& context) {
  return OpContext(context.op(), context.def(), WidenedMetas(context.inputs()),
                   WidenedMetas(context.outputs()), context.place());
}

bool InferHalfOutputs(OpContext* context, void (*infer)(OpContext*)) {
  const auto is_half = [](const TensorMeta& meta) { return IsHalf(meta.dtype); };
  if (!IsWidened(*context)) return false;
  const bool reads_half = std::ranges::any_of(context->inputs(), is_half);
  const DType dtype = reads_half ? DTypeOfInputs(*context) : FirstDType(*context);
  CheckNamedDTypes(*context, dtype);
  if (!reads_half) return false;
  OpContext wide = Widened(*context);
  infer(&wide);
  std::vector<TensorMeta> outputs(wide.outputs().begin(), wide.outputs().end());
  size_t index = 0;
  for (const SlotDef& slot : context->def().outputs) {
    for (size_t i = 0; i < context->OutputCount(slot.name); ++i, ++index) {
      TensorMeta& output = outputs[index];
      if (output.dtype != DType::kFloat32) continue;
      output.dtype = NarrowedDType(*context, slot, i, dtype);
    }
  }
  std::ranges::move(outputs, context->mutable_outputs().begin());
  return true;
}

}  // namespace skiff
