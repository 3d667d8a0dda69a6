#include "operators/optimizer/kernels/average_op.h"

#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/host_slots.h"
#include "framework/tensor/dims_agree.h"
#include "operators/optimizer/kernels/list_walk.h"
#include "operators/optimizer/kernels/update_op.h"

namespace skiff {
namespace {

SlotDef ListSlot(StaticText name, StaticText doc) {
  return {.name = name, .doc = doc, .duplicable = true};
}

void CheckCount(const OpContext& context, std::string_view param, const AverageOp::State& state) {
  const size_t expected = context.InputCount(param);
  SKIFF_ENFORCE(context.InputCount(state.input) == expected, kInvalidArgument, context.op().type,
                ": ", state.input, " has ", context.InputCount(state.input),
                " arguments, expected ", expected, " as ", param);
  for (size_t i = 0; i < expected; ++i) {
    SKIFF_ENFORCE(context.OutputIndex(state.output, i) >= 0, kInvalidArgument, context.op().type,
                  ": output \"", state.output, "\" has no argument ", i, ", expected one for each ",
                  param);
  }
}

void CheckArray(const OpContext& context, std::string_view slot, size_t i, const Shape& shape,
                DType dtype) {
  const TensorMeta& found = context.Input(slot, i);
  SKIFF_ENFORCE(DimsAgree(found.shape.dims(), shape.dims()) && found.dtype == dtype,
                kInvalidArgument, context.op().type, ": ", slot, "[", i, "] is ", found.dtype, " ",
                found.shape, ", expected ", dtype, " ", shape);
}

void CheckNumber(const OpContext& context, std::string_view slot, size_t i, DType dtype) {
  const TensorMeta& found = context.Input(slot, i);
  const bool is_one = !found.shape.is_known() || found.shape.element_count() == 1;
  SKIFF_ENFORCE(is_one && found.dtype == dtype, kInvalidArgument, context.op().type, ": ", slot,
                "[", i, "] is ", found.dtype, " ", found.shape, ", expected ", dtype,
                " of one element");
}

void InferAverage(OpContext& context, const AverageOp& op) {
  const size_t count = context.InputCount(op.param);
  SKIFF_ENFORCE(count > 0, kInvalidArgument, op.type, ": no ", op.param, ", expected at least one");
  const DType dtype = context.Input(op.param).dtype;
  for (const AverageOp::State& state : op.arrays) {
    CheckCount(context, op.param, state);
    for (size_t i = 0; i < count; ++i) {
      const Shape& shape = context.Input(op.param, i).shape;
      CheckArray(context, op.param, i, shape, dtype);
      CheckArray(context, state.input, i, shape, dtype);
      context.SetOutputLike(state.output, state.input, i);
    }
  }
  for (const AverageOp::State& state : op.scalars) {
    CheckCount(context, op.param, state);
    for (size_t i = 0; i < count; ++i) {
      CheckNumber(context, state.input, i, op.scalar_dtype);
      context.SetOutputLike(state.output, state.input, i);
    }
  }
  if (context.HasInput("SkipUpdate")) CheckNumber(context, "SkipUpdate", 0, DType::kBool);
  // Last, so that it may rely on the checks above.
  if (op.check) op.check(context);
}

}  // namespace

OpDef MakeAverageOpDef(AverageOp op) {
  OpDef def;
  def.type = op.type;
  def.doc = op.doc;
  def.inputs = {ListSlot(op.param, "The parameters after the step, float32 or float64.")};
  def.update = UpdateRule{.lists = {op.param}};
  for (const AverageOp::State& scalar : op.scalars) def.update->scalars.push_back(scalar.input);
  // Arrays before scalars: kernels number the states in this order.
  for (const auto* states : {&op.arrays, &op.scalars}) {
    for (const AverageOp::State& state : *states) {
      def.inputs.push_back(ListSlot(state.input, state.doc));
      def.outputs.push_back(ListSlot(state.output, StrCat(state.input, " after the step.")));
      def.in_place.emplace_back(state.input, state.output);
      def.update->lists.push_back(state.input);
    }
  }
  def.inputs.insert(def.inputs.end(), op.shared_inputs.begin(), op.shared_inputs.end());
  def.inputs.push_back({.name = "SkipUpdate",
                        .doc = "One bool: whether to leave everything as it is.",
                        .dispensable = true});
  def.attrs = op.attrs;
  def.attrs.push_back(IsFlatAttr());
  def.attrs.push_back(
      BoolAttr(kOnHostAttr,
               "Whether the averages are kept in host memory, wherever the parameters "
               "are; the result is the same."));
  // Averages change by small steps, which half would lose: InferAverage refuses it.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "averages of parameters are not differentiated";
  def.kernel_dtype_slot = op.param;
  def.infer = [op = std::move(op)](OpContext& context) { InferAverage(context, op); };
  return def;
}

AverageKernel::AverageKernel(const OpContext& context)
    : params_(InputIndices(context, context.def().update->lists.front())),
      skip_(context, "SkipUpdate") {
  // Elements are numbered through all parameters, so that threads share many small ones evenly.
  begins_.push_back(0);
  for (const int param : params_) {
    const Shape& shape = context.inputs()[static_cast<size_t>(param)].shape;
    begins_.push_back(begins_.back() + shape.element_count());
  }
  for (const auto& [input, output] : context.def().in_place) {
    states_.push_back(PairsOf(context, input, output));
  }
}

// Looks up the addresses once per binding rather than in every run: there may be thousands.
void AverageKernel::Bind(const KernelContext& run) {
  param_data_.clear();
  for (const int param : params_) param_data_.push_back(run.input(param).raw_data());
  state_data_.assign(states_.size(), {});
  for (size_t k = 0; k < states_.size(); ++k) {
    for (const auto& [in, out] : states_[k]) {
      state_data_[k].push_back({run.input(in).raw_data(), run.output(out).raw_data()});
    }
  }
}

void AverageKernel::Run(const KernelContext& run) {
  if (skip_.is_there() && *skip_(run)) {
    for (const auto& states : states_) CopyToOutputs(run, states);
    return;
  }
  // Before the arrays: what a step does with them depends on the counts and decays.
  for (size_t i = 0; i < params_.size(); ++i) Advance(run, i);
  ForEachBlock(begins_.back(), [&](int64_t begin, int64_t end) {
    ForEachArray(begins_, begin, end,
                 [&](size_t i, int64_t first, int64_t last) { Accumulate(i, first, last); });
  });
}

}  // namespace skiff
