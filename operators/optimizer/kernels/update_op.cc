#include "operators/optimizer/kernels/update_op.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "framework/base/error.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/half.h"

namespace skiff {
namespace {

// Returns the name of an argument in messages. An index is useful only in lists.
std::string Argument(const OpContext& context, std::string_view slot, size_t i) {
  if (context.InputCount("Param") == 1) return std::string(slot);
  return StrCat(slot, "[", i, "]");
}

void CheckCount(const OpContext& context, std::string_view slot, bool may_be_shared) {
  const size_t found = context.InputCount(slot);
  const size_t expected = context.InputCount("Param");
  SKIFF_ENFORCE(found == expected || (may_be_shared && found == 1), kInvalidArgument,
                context.op().type, ": ", slot, " has ", found, " arguments, expected ", expected,
                may_be_shared ? " as Param, or one for all" : " as Param");
}

// Throws Error unless argument i has the shape of Param i, and the dtype.
void CheckLikeParam(const OpContext& context, std::string_view slot, size_t i, DType dtype) {
  const TensorMeta& found = context.Input(slot, i);
  const Shape& expected = context.Input("Param", i).shape;
  SKIFF_ENFORCE(DimsAgree(found.dense_shape().dims(), expected.dims()) && found.dtype == dtype,
                kInvalidArgument, context.op().type, ": ", Argument(context, slot, i), " is ",
                found.dtype, " ", found.dense_shape(), ", expected ", dtype, " ", expected);
}

// Programs often keep numbers in float32 even if the parameters are float64, so both are accepted.
void CheckScalar(const OpContext& context, std::string_view slot, size_t i, DType math) {
  const TensorMeta& found = context.Input(slot, i);
  SKIFF_ENFORCE(!found.shape.is_known() || found.shape.element_count() == 1, kInvalidArgument,
                context.op().type, ": ", Argument(context, slot, i), " has shape ", found.shape,
                ", expected one element");
  SKIFF_ENFORCE(found.dtype == DType::kFloat32 || found.dtype == math, kInvalidArgument,
                context.op().type, ": ", Argument(context, slot, i), " is ", found.dtype,
                ", expected float32",
                math == DType::kFloat32 ? "" : StrCat(" or Param's dtype, ", math));
}

void CheckListAttrs(const OpContext& context, const std::vector<StaticText>& names) {
  const size_t expected = context.InputCount("Param");
  for (const StaticText name : names) {
    const Attribute* value = EffectiveAttr(context.op(), *context.def().FindAttr(name));
    const auto* floats = std::get_if<std::vector<float>>(value);
    const auto* texts = std::get_if<std::vector<std::string>>(value);
    const size_t found = floats != nullptr ? floats->size() : texts->size();
    SKIFF_ENFORCE(found == 1 || found == expected, kInvalidArgument, context.op().type,
                  ": attribute ", name, " has ", found, " entries, expected ",
                  expected == 1 ? "1" : StrCat("1 for all or ", expected, " as Param has"));
  }
}

// Returns the dtype that the op computes in. Parameters of a two-byte dtype, and no others, have
// master weights.
DType MathDType(const OpContext& context) {
  const std::string& op = context.op().type;
  const DType dtype = context.Input("Param").dtype;
  if (context.Attr<bool>("multi_precision")) {
    SKIFF_ENFORCE(IsHalf(dtype), kInvalidArgument, op, ": multi_precision = true and Param is ",
                  dtype, ", expected float16 or bfloat16");
    return DType::kFloat32;
  }
  SKIFF_ENFORCE(!IsHalf(dtype), kInvalidArgument, op, ": multi_precision = false and Param is ",
                dtype, ", expected multi_precision = true, with float32 weights in MasterParam");
  SKIFF_ENFORCE(
      context.InputCount("MasterParam") == 0 && context.OutputCount("MasterParamOut") == 0,
      kInvalidArgument, op, ": multi_precision = false and MasterParam is connected, expected ",
      "multi_precision = true, or no MasterParam");
  return dtype;
}

// Checks the flag that skips a step, e.g. after an overflow of scaled gradients.
void CheckSkip(const OpContext& context) {
  if (!context.HasInput("SkipUpdate")) return;
  const TensorMeta& skip = context.Input("SkipUpdate");
  SKIFF_ENFORCE(
      skip.dtype == DType::kBool && (!skip.shape.is_known() || skip.shape.element_count() == 1),
      kInvalidArgument, context.op().type, ": SkipUpdate is ", skip.dtype, " ", skip.shape,
      ", expected one bool");
}

void CheckOutputCount(const OpContext& context, std::string_view input, std::string_view output) {
  const size_t found = context.OutputCount(output);
  const size_t expected = context.InputCount(input);
  SKIFF_ENFORCE(found == expected, kInvalidArgument, context.op().type, ": output \"", output,
                "\" has ", found, " arguments, expected ", expected, " as ", input);
}

// Throws Error unless every output is connected. Otherwise the next step would read the old state.
void CheckOutputs(const OpContext& context, std::string_view input, std::string_view output) {
  CheckOutputCount(context, input, output);
  for (size_t i = 0; i < context.InputCount(input); ++i) {
    SKIFF_ENFORCE(context.OutputIndex(output, i) >= 0, kInvalidArgument, context.op().type,
                  ": output \"", output, "\" has no argument ", i, ", expected one for each ",
                  input);
  }
}

void SetOutputs(OpContext& context, const UpdateOp::State& state) {
  if (state.output.empty()) return;
  for (size_t i = 0; i < context.InputCount(state.input); ++i) {
    context.SetOutputLike(state.output, state.input, i);
  }
}

bool ShapesAreKnown(const OpContext& context) {
  for (size_t i = 0; i < context.InputCount("Param"); ++i) {
    if (!context.Input("Param", i).shape.is_known()) return false;
  }
  return true;
}

// Checks the attributes that say what part of the parameters is updated.
void CheckPart(const OpContext& context, const UpdateOp& op) {
  const std::string& type = context.op().type;
  const bool has_part = HasPart(context.op());
  if (has_part && ShapesAreKnown(context)) PiecesOf(context);
  SKIFF_ENFORCE(!has_part || !context.Input("Grad").is_selected_rows(), kInvalidArgument, type,
                ": Grad is selected rows, expected a dense tensor where the op updates a part");
  for (const std::string& slot : context.Attr<std::vector<std::string>>(kShardedAttr)) {
    SKIFF_ENFORCE(has_part, kInvalidArgument, type, ": ", slot,
                  " is sharded, and no attribute gives the part that the op updates");
    SKIFF_ENFORCE(slot == "MasterParam" ||
                      std::ranges::count(op.states, slot,
                                         [](const auto& s) { return std::string(s.input); }) > 0,
                  kInvalidArgument, type, ": ", kShardedAttr, " names \"", slot,
                  "\", expected MasterParam or a state of the parameters' shapes");
  }
}

// Checks an array that holds only the part of the parameters that the op updates.
void CheckShard(const OpContext& context, std::string_view slot, DType dtype) {
  const std::string& type = context.op().type;
  SKIFF_ENFORCE(context.InputCount(slot) == 1, kInvalidArgument, type, ": ", slot, " has ",
                context.InputCount(slot), " arguments, expected one, a shard");
  const std::vector<int64_t> dims = {ShapesAreKnown(context) ? ShardElements(PiecesOf(context))
                                                             : -1};
  const TensorMeta& found = context.Input(slot);
  SKIFF_ENFORCE(DimsAgree(found.dense_shape().dims(), dims) && found.dtype == dtype,
                kInvalidArgument, type, ": ", slot, " is ", found.dtype, " ", found.dense_shape(),
                ", expected a shard, ", dtype, " ", Shape(dims));
}

// Checks a list of arrays of Param's shapes, or a shard of them, and sets the metas of their next
// values.
void CheckAndSetState(OpContext& context, const UpdateOp::State& state, DType dtype) {
  if (IsSharded(context, state.input)) {
    CheckShard(context, state.input, dtype);
  } else {
    CheckCount(context, state.input, false);
    for (size_t i = 0; i < context.InputCount("Param"); ++i) {
      CheckLikeParam(context, state.input, i, dtype);
    }
  }
  CheckOutputs(context, state.input, state.output);
  SetOutputs(context, state);
}

void InferUpdate(OpContext& context, const UpdateOp& op) {
  const size_t count = context.InputCount("Param");
  SKIFF_ENFORCE(count > 0, kInvalidArgument, op.type, ": no Param, expected at least one");
  const DType dtype = MathDType(context);
  CheckCount(context, "Grad", false);
  CheckCount(context, "LearningRate", true);
  const DType param_dtype = context.Input("Param").dtype;
  // With master weights, the gradients may already be float32.
  const DType grad_dtype = context.Input("Grad").dtype == dtype ? dtype : param_dtype;
  for (size_t i = 0; i < count; ++i) {
    CheckLikeParam(context, "Param", i, param_dtype);
    CheckLikeParam(context, "Grad", i, grad_dtype);
    SKIFF_ENFORCE(count == 1 || !context.Input("Grad", i).is_selected_rows(), kInvalidArgument,
                  op.type, ": Grad[", i,
                  "] is selected rows: expected a dense tensor in a list of ", count);
  }
  for (size_t i = 0; i < context.InputCount("LearningRate"); ++i) {
    CheckScalar(context, "LearningRate", i, dtype);
  }
  CheckPart(context, op);
  for (const UpdateOp::State& state : op.states) CheckAndSetState(context, state, dtype);
  if (dtype != param_dtype) {
    const UpdateOp::State master{
        .input = "MasterParam", .output = "MasterParamOut", .doc = {}, .factor = {}};
    CheckAndSetState(context, master, dtype);
  }
  for (const UpdateOp::State& scalar : op.scalars) {
    CheckCount(context, scalar.input, false);
    for (size_t i = 0; i < count; ++i) CheckScalar(context, scalar.input, i, dtype);
    // The program may advance the powers itself (use_global_beta_pow), and then no output is
    // connected.
    if (context.OutputCount(scalar.output) > 0) {
      CheckOutputCount(context, scalar.input, scalar.output);
    }
    SetOutputs(context, scalar);
  }
  for (const SlotDef& slot : op.shared_scalars) {
    if (context.HasInput(slot.name)) CheckScalar(context, slot.name, 0, dtype);
  }
  if (context.HasInput("GradScale")) CheckScalar(context, "GradScale", 0, dtype);
  CheckSkip(context);
  CheckListAttrs(context, op.list_attrs);
  CheckOutputs(context, "Param", "ParamOut");
  SetOutputs(context, {.input = "Param", .output = "ParamOut", .doc = {}, .factor = {}});
}

SlotDef ListSlot(StaticText name, StaticText doc, bool dispensable = false) {
  return {.name = name, .doc = doc, .duplicable = true, .dispensable = dispensable};
}

// Returns the attribute that gives the part of the parameters that the op updates.
AttrDef PartAttr(bool needs_norms) {
  return {.name = needs_norms ? kParameterPartAttr : kPartAttr,
          .type = AttrType::kLongs,
          .default_value = std::vector<int64_t>{},
          .doc = needs_norms
                     ? "[first, last): the op updates only these parameters; empty: all."
                     : "[begin, end): the op updates only these of the elements of all parameters, "
                       "one parameter after the other; empty: all."};
}

// Returns the attributes of every update op. An op's own attributes replace those of the same name.
std::vector<AttrDef> CommonAttrs(std::vector<AttrDef> own, bool needs_norms) {
  std::vector<AttrDef> attrs = std::move(own);
  for (AttrDef& attr : std::vector<AttrDef>{
           BoolAttr("multi_precision",
                    "The parameters are float16 or bfloat16, and MasterParam is updated: "
                    "ParamOut = MasterParamOut, rounded."),
           FloatAttr("rescale_grad", 1.0f, "The gradient is multiplied by this first."),
           ChoiceAttr("regularization_method", "", {"", "l1_decay", "l2_decay"},
                      "The term added to the gradient. \"l2_decay\": regularization_coeff * Param; "
                      "\"l1_decay\": regularization_coeff * sign(Param)."),
           FloatAttr("regularization_coeff", 0.0f, "Of regularization_method."),
           IsFlatAttr(),
           PartAttr(needs_norms),
           {.name = kShardedAttr,
           .type = AttrType::kStrings,
           .default_value = std::vector<std::string>{},
           .doc = "The slots of lists that have one argument, a shard: only the part."}}) {
    if (std::ranges::count(attrs, attr.name, &AttrDef::name) > 0) continue;
    attrs.push_back(std::move(attr));
  }
  return attrs;
}

// Appends the slots of states or scalars to the definition. `may_be_unwanted`: a program may leave
// their outputs unconnected.
void AddStates(const std::vector<UpdateOp::State>& states, bool may_be_unwanted, OpDef* def) {
  for (const UpdateOp::State& state : states) {
    def->inputs.push_back(ListSlot(state.input, state.doc));
    def->update->lists.push_back(state.input);
    if (state.output.empty()) continue;
    def->outputs.push_back(
        ListSlot(state.output, StrCat(state.input, " after the step."), may_be_unwanted));
    def->in_place.emplace_back(state.input, state.output);
  }
}

// Tells passes which lists have single numbers, and how a program advances them.
void AddScalarRules(const std::vector<UpdateOp::State>& scalars, UpdateRule* rule) {
  for (const UpdateOp::State& scalar : scalars) {
    rule->scalars.push_back(scalar.input);
    // A scalar without a factor isn't a power that the op advances.
    if (scalar.factor.empty()) continue;
    rule->powers.push_back(
        {.input = scalar.input, .output = scalar.output, .factor = scalar.factor});
  }
}

void AddMasterWeights(OpDef* def) {
  def->inputs.push_back(
      ListSlot("MasterParam",
               "With multi_precision the float32 weights, each of its parameter's "
               "shape; else none.",
               true));
  def->outputs.push_back(ListSlot("MasterParamOut", "MasterParam after the step.", true));
  def->update->lists.emplace_back("MasterParam");
  def->in_place.emplace_back("MasterParam", "MasterParamOut");
}

}  // namespace

std::vector<PartPiece> PiecesOf(const OpContext& context) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < context.InputCount("Param"); ++i) {
    counts.push_back(context.Input("Param", i).shape.element_count());
  }
  return PiecesOf(context.op(), counts);
}

bool IsSharded(const OpContext& context, std::string_view slot) {
  const auto& sharded = context.Attr<std::vector<std::string>>(kShardedAttr);
  return std::ranges::count(sharded, slot) > 0;
}

OpDef MakeUpdateOpDef(UpdateOp op) {
  OpDef def;
  def.type = op.type;
  def.doc = op.doc;
  def.inputs = {
      ListSlot("Param",
               "The parameters, float32 or float64; with multi_precision float16 or bfloat16."),
      ListSlot("Grad",
               "Their gradients, each of its parameter's shape; of one parameter, selected rows, "
               "too. With multi_precision, all of Param's dtype, or all float32."),
      ListSlot("LearningRate", "One element, for all parameters or for each: the learning rate.")};
  def.inputs[1].selected_rows = true;
  def.outputs = {ListSlot("ParamOut", "The parameters after the step; usually Param itself.")};
  // In place, so that a step allocates no second copy of the parameters and their states.
  def.in_place = {{"Param", "ParamOut"}};
  def.update = UpdateRule{
      .lists = {"Param", "Grad"}, .list_attrs = op.list_attrs, .merged_as = op.merged_as};
  AddStates(op.states, false, &def);
  AddStates(op.scalars, true, &def);
  AddScalarRules(op.scalars, &*def.update);
  AddMasterWeights(&def);
  def.inputs.insert(def.inputs.end(), op.shared_scalars.begin(), op.shared_scalars.end());
  def.inputs.push_back({.name = "SkipUpdate",
                        .doc = "One bool: whether to leave everything as it is.",
                        .dispensable = true});
  def.inputs.push_back({.name = "GradScale",
                        .doc = "One element: the gradients are multiplied by it, after "
                               "rescale_grad.",
                        .dispensable = true});
  def.attrs = CommonAttrs(op.attrs, op.needs_norms);
  // Parameters may be half and their master weights float32: InferUpdate knows.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "updates of parameters are not differentiated";
  def.kernel_dtype_slot = "Param";
  def.infer = [op = std::move(op)](OpContext& context) { InferUpdate(context, op); };
  return def;
}

AttrDef FloatAttr(StaticText name, float default_value, StaticText doc) {
  return {.name = name, .type = AttrType::kFloat, .default_value = default_value, .doc = doc};
}

AttrDef IsFlatAttr() {
  return BoolAttr(
      kIsFlatAttr,
      "Asks for the tensors of each list to be contiguous in memory; the result is the same.");
}

AttrDef BoolAttr(StaticText name, StaticText doc) {
  return {.name = name, .type = AttrType::kBool, .default_value = false, .doc = doc};
}

}  // namespace skiff
