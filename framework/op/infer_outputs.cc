#include "framework/op/infer_outputs.h"

#include <algorithm>
#include <span>
#include <string>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/within_memory.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"
#include "framework/op/half_arguments.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {
namespace {

// Throws Error unless an argument of the slot can give an attribute.
void CheckGivenAttribute(const OpDef& def, const SlotDef& slot, const TensorMeta& meta) {
  const AttrType type = def.FindAttr(slot.attribute)->type;
  const bool fits = IsFloats(type) ? meta.dtype == DType::kFloat32 || meta.dtype == DType::kFloat64
                                   : meta.dtype == DType::kInt32 || meta.dtype == DType::kInt64;
  const bool is_one = slot.duplicable || IsOneNumber(type);
  SKIFF_ENFORCE(fits && (!is_one || !meta.shape.is_known() || meta.shape.element_count() == 1),
                kInvalidArgument, def.type, ": input \"", slot.name,
                "\", which gives the attribute \"", slot.attribute, "\", is ", meta.dtype, " ",
                meta.shape, ", expected ", is_one ? "one number of " : "",
                IsFloats(type) ? "float32 or float64" : "int32 or int64");
}

// Throws Error for arguments that no op may have: a shape that no tensor has, or selected rows in a
// slot that doesn't take them, or a tensor in place of an array.
void CheckArguments(const OpDef& def, const Op& op, bool is_input,
                    std::span<const TensorMeta> metas) {
  const char* kind = is_input ? "input" : "output";
  const bool runs_block = !op.SubBlocks().empty();
  size_t index = 0;
  for (const SlotDef& slot : is_input ? def.inputs : def.outputs) {
    for (const std::string& name : is_input ? op.Input(slot.name) : op.Output(slot.name)) {
      const TensorMeta& meta = metas[index++];
      const bool fits = slot.selected_rows || !meta.is_selected_rows();
      SKIFF_ENFORCE(fits, kInvalidArgument, op.type, ": ", kind, " \"", slot.name,
                    "\" would be selected rows, variable \"", name,
                    "\": expected a dense tensor (selected_rows_to_dense makes one)");
      // A block gets arrays through any slot of the op that runs it.
      const bool is_as_expected =
          slot.array == meta.is_array || name == kEmptyVarName || runs_block;
      SKIFF_ENFORCE(is_as_expected, kInvalidArgument, op.type, ": ", kind, " \"", slot.name,
                    "\", variable \"", name, "\": expected ",
                    slot.array ? "an array of tensors" : "a tensor, found an array of tensors");
      if (!slot.attribute.empty() && name != kEmptyVarName) CheckGivenAttribute(def, slot, meta);
      try {
        CheckElementLimit(meta.shape.dims());
        if (meta.is_selected_rows()) CheckElementLimit(meta.dense_shape().dims());
      } catch (const Error& error) {
        throw error.WithContext(
            StrCat(op.type, ": ", kind, " \"", slot.name, "\", variable \"", name, "\""));
      }
    }
  }
}

bool HasOneElement(const Shape& shape) { return shape.is_known() && shape.element_count() == 1; }

// Checks each gradient S@GRAD that an op reads together with S. What else a gradient op reads in
// place of S, its own rule compares with the gradient. Of an op that runs a block, lowering knows
// which gradient belongs to what.
void CheckGradients(const OpContext& context) {
  if (context.def().block != nullptr) return;
  for (const SlotDef& gradient : context.def().inputs) {
    const std::string_view name = gradient.name;
    const std::string_view slot = ForwardName(name);
    if (context.def().FindInput(slot) == nullptr) continue;
    const size_t count = context.InputCount(slot);
    const size_t gradients = context.InputCount(name);
    SKIFF_ENFORCE(count == 0 || gradients == 0 || gradients == count, kInvalidArgument,
                  context.op().type, ": ", name, " has ", gradients, " variables, expected ", count,
                  ", as ", slot, " has");
    for (size_t i = 0; i < std::min(count, gradients); ++i) {
      const bool are_given = context.InputIndex(slot, i) >= 0 && context.InputIndex(name, i) >= 0;
      if (are_given) CheckGradient(context, name, i, context.Input(slot, i));
    }
  }
}

// Checks that an op which writes the gradient S@GRAD[i] is given S[i], if it reads S at all:
// kernels take the gradient's shape from S, or read it. (Not where S gives a shape only and may be
// missing: files of old versions lack it, and the op's own rule finds the shape elsewhere.)
void CheckWrittenGradients(const OpContext& context) {
  if (context.def().block != nullptr) return;
  for (const SlotDef& gradient : context.def().outputs) {
    const std::string_view name = gradient.name;
    const std::string_view slot = ForwardName(name);
    const SlotDef* read = context.def().FindInput(slot);
    if (read == nullptr || (read->dispensable && read->shape_only)) continue;
    for (size_t i = 0; i < context.OutputCount(name); ++i) {
      const bool is_wanted = context.OutputIndex(name, i) >= 0;
      const bool is_given = i < context.InputCount(slot) && context.InputIndex(slot, i) >= 0;
      SKIFF_ENFORCE(!is_wanted || is_given, kInvalidArgument, context.op().type, ": output \"",
                    name, "\", variable \"", context.op().Output(name)[i], "\": expected input \"",
                    slot, "\", of which it is the gradient");
    }
  }
}

// Where each argument of an output is the next value of one of an input, there are no more of them.
void CheckNextValues(const Op& op, const OpDef& def) {
  for (const auto& [input, output] : def.in_place) {
    const SlotDef* of_output = def.FindOutput(output);
    if (of_output == nullptr || !of_output->duplicable || !def.FindInput(input)->duplicable)
      continue;
    const size_t next = op.Output(output).size();
    const size_t now = op.Input(input).size();
    SKIFF_ENFORCE(next <= now, kInvalidArgument, op.type, ": output slot \"", output, "\" has ",
                  next, " variables, expected at most ", now, ", as many as input slot \"", input,
                  "\"");
  }
}

}  // namespace

Op WithGivenAttributes(const OpContext& context) {
  Op op = context.op();
  for (const SlotDef& slot : context.def().inputs) {
    if (!GivesAttribute(op, slot)) continue;
    for (size_t i = 0; i < context.InputCount(slot.name); ++i) {
      CheckGivenAttribute(context.def(), slot, context.Input(slot.name, i));
    }
    const AttrType type = context.def().FindAttr(slot.attribute)->type;
    if (type == AttrType::kFloat) {
      op.SetAttr(slot.attribute, context.Attr<float>(slot.attribute));
    } else if (IsFloats(type)) {
      op.SetAttr(slot.attribute, context.Attr<std::vector<float>>(slot.attribute));
    } else if (IsOneNumber(type)) {
      op.SetAttr(slot.attribute, context.IntAttr(slot.attribute));
    } else {
      op.SetAttr(slot.attribute, context.IntsAttr(slot.attribute));
    }
    op.SetInput(slot.name, {});
  }
  return op;
}

void CheckGradient(const OpContext& context, std::string_view slot, size_t i,
                   const TensorMeta& of) {
  const TensorMeta& gradient = context.Input(slot, i);
  if (of.is_array || gradient.is_array) return;
  const Shape shape = of.dense_shape();
  const Shape found = gradient.dense_shape();
  // Fluid's scalars were [1] before they were [].
  const bool fits =
      DimsAgree(found.dims(), shape.dims()) || (HasOneElement(found) && HasOneElement(shape));
  SKIFF_ENFORCE(fits && gradient.dtype == of.dtype, kInvalidArgument, context.op().type, ": ", slot,
                " is ", gradient.dtype, " ", found, ", expected ", of.dtype, " ", shape, ", as ",
                ForwardName(slot), " is");
}

namespace {

// Runs the shape rule of an op without half.
void InferWideOutputs(OpContext* context) {
  const OpDef& def = context->def();
  CheckArguments(def, context->op(), /*is_input=*/true, context->inputs());
  CheckGradients(*context);
  CheckWrittenGradients(*context);
  // Inputs are checked before the rule, so that its arithmetic on dims can't overflow, and outputs
  // after it, since a product of legal dims may be too large.
  WithinMemory([&] { def.infer(*context); });
  CheckNextValues(context->op(), def);
  size_t index = 0;
  for (const SlotDef& slot : def.outputs) {
    for (size_t i = 0; i < context->OutputCount(slot.name); ++i) {
      TensorMeta& output = context->mutable_outputs()[index++];
      if (output.lod_level == 0) output.lod = nullptr;
      if (def.block == nullptr) output.is_array = slot.array;
    }
  }
  CheckArguments(def, context->op(), /*is_input=*/false, context->outputs());
}

}  // namespace

void InferOutputs(OpContext* context) {
  if (!InferHalfOutputs(context, InferWideOutputs)) InferWideOutputs(context);
}

}  // namespace skiff
