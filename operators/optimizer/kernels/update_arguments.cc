#include "operators/optimizer/kernels/update_arguments.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "operators/optimizer/kernels/update_op.h"

namespace skiff {
namespace {

std::vector<double> ValuesOf(const OpContext& context, const NumberSource& source) {
  switch (context.def().FindAttr(source.attr)->type) {
    case AttrType::kFloat:
      return {context.Attr<float>(source.attr)};
    case AttrType::kFloats: {
      const auto& list = context.Attr<std::vector<float>>(source.attr);
      return {list.begin(), list.end()};
    }
    // Formulas know only numbers, so a bool or a choice is passed to them as 0 or 1.
    case AttrType::kBool:
      return {context.Attr<bool>(source.attr) ? 1.0 : 0.0};
    case AttrType::kString:
      return {context.Attr<std::string>(source.attr) == source.choice ? 1.0 : 0.0};
    default:
      Throw(ErrorCode::kUnimplemented, context.op().type, ": attribute ", source.attr,
            " is neither a number nor a bool nor a choice");
  }
}

UpdateArguments::Number NumberOf(const OpContext& context, const NumberSource& source) {
  const bool has_slot = source.slot != nullptr && context.def().FindInput(source.slot) != nullptr;
  return {.input = has_slot ? context.InputIndex(source.slot) : -1,
          .values = ValuesOf(context, source)};
}

UpdateArguments::Scalar ScalarOfRule(const OpContext& context, const ScalarSource& source) {
  const std::string output = source.output == nullptr ? "" : source.output;
  // The program advances the powers itself, so the op passes them on unchanged.
  const bool is_global =
      context.HasAttr("use_global_beta_pow") && context.Attr<bool>("use_global_beta_pow");
  return {.pairs = PairsOf(context, source.input, output),
          .factor = is_global ? -1 : static_cast<int>(source.factor)};
}

template <typename T>
GradientForm<T> GradientFormOf(const OpContext& context, size_t i) {
  GradientForm<T> form;
  form.rescale = static_cast<T>(context.Attr<float>("rescale_grad"));
  std::string method;
  float coefficient = 0;
  // Some ops have one method for each parameter, the others one for all.
  if (context.def().FindAttr("regularization_method")->type == AttrType::kStrings) {
    method = EntryFor(context.Attr<std::vector<std::string>>("regularization_method"), i);
    coefficient = EntryFor(context.Attr<std::vector<float>>("regularization_coeff"), i);
  } else {
    method = context.Attr<std::string>("regularization_method");
    coefficient = context.Attr<float>("regularization_coeff");
  }
  if (method == "l1_decay") form.l1_decay = static_cast<T>(coefficient);
  if (method == "l2_decay") form.l2_decay = static_cast<T>(coefficient);
  return form;
}

// Returns a pair for each parameter, even if one array, a shard, is that of all parameters.
std::vector<UpdateArguments::Pair> PairsOfParameters(const OpContext& context,
                                                     std::string_view input,
                                                     std::string_view output) {
  std::vector<UpdateArguments::Pair> pairs = PairsOf(context, input, output);
  if (IsSharded(context, input)) pairs.resize(context.InputCount("Param"), pairs[0]);
  return pairs;
}

}  // namespace

UpdateArguments::UpdateArguments(const OpContext& context, const CoefficientRule& rule)
    : params(PairsOf(context, "Param", "ParamOut")),
      grads(InputIndices(context, "Grad")),
      rates(InputIndices(context, "LearningRate")),
      skip(context.InputIndex("SkipUpdate")),
      scale(context.InputIndex("GradScale")) {
  for (const NumberSource& source : rule.numbers) numbers.push_back(NumberOf(context, source));
  for (const ScalarSource& source : rule.scalars) scalars.push_back(ScalarOfRule(context, source));
  // The states are whatever the definition updates in place besides parameters and scalars, in its
  // order.
  for (const auto& [input, output] : context.def().in_place) {
    const auto is_scalar = [&](const ScalarSource& source) { return source.input == input; };
    const bool is_param = input == "Param" || input == "MasterParam";
    if (is_param || std::ranges::any_of(rule.scalars, is_scalar)) continue;
    states.push_back(PairsOfParameters(context, input, output));
    sharded_states.push_back(IsSharded(context, input));
  }
  SKIFF_ENFORCE(states.size() >= rule.state_count && states.size() <= kMaxUpdateStates,
                kFailedPrecondition, context.op().type, " has ", states.size(),
                " states, expected at least ", rule.state_count, ", as its formula, and at most ",
                kMaxUpdateStates);
  pieces = PiecesOf(context);
  std::ranges::transform(pieces, std::back_inserter(counts), &PartPiece::count);
  has_part = HasPart(context.op());
  if (!context.Attr<bool>("multi_precision")) return;
  // The formula updates the master weights; the parameters become their rounded copies.
  half_params = std::move(params);
  params = PairsOfParameters(context, "MasterParam", "MasterParamOut");
  has_sharded_params = IsSharded(context, "MasterParam");
  half = context.Input("Param").dtype;
  has_half_grads = context.Input("Grad").dtype == half;
}

UpdateNumbers UpdateArguments::NumbersOf(size_t i) const {
  UpdateNumbers found;
  for (size_t k = 0; k < numbers.size(); ++k) found.values[k] = EntryFor(numbers[k].values, i);
  return found;
}

bool UpdatesOnlyTouchedRows(const OpContext& context, SparseRule rule) {
  if (rule != SparseRule::kLazyMode) return rule == SparseRule::kTouchedRows;
  return context.HasAttr("lazy_mode") && context.Attr<bool>("lazy_mode");
}

std::vector<int> InputIndices(const OpContext& context, std::string_view slot) {
  std::vector<int> indices;
  for (size_t i = 0; i < context.InputCount(slot); ++i) {
    indices.push_back(context.InputIndex(slot, i));
  }
  return indices;
}

std::vector<int64_t> ElementCounts(const OpContext& context, std::string_view slot) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < context.InputCount(slot); ++i) {
    counts.push_back(context.Input(slot, i).shape.element_count());
  }
  return counts;
}

std::vector<UpdateArguments::Pair> PairsOf(const OpContext& context, std::string_view input,
                                           std::string_view output) {
  std::vector<UpdateArguments::Pair> pairs;
  for (size_t i = 0; i < context.InputCount(input); ++i) {
    pairs.push_back({.in = context.InputIndex(input, i),
                     .out = output.empty() ? -1 : context.OutputIndex(output, i)});
  }
  return pairs;
}

void CopyToOutputs(const KernelContext& run, std::span<const UpdateArguments::Pair> pairs) {
  for (const UpdateArguments::Pair& pair : pairs) {
    if (pair.out < 0 || run.output(pair.out).raw_data() == run.input(pair.in).raw_data()) continue;
    CopyTensor(run.input(pair.in), &run.output(pair.out));
  }
}

template <typename T>
std::vector<GradientForm<T>> GradientFormsOf(const OpContext& context) {
  std::vector<GradientForm<T>> forms;
  for (size_t i = 0; i < context.InputCount("Param"); ++i) {
    forms.push_back(GradientFormOf<T>(context, i));
  }
  return forms;
}

template std::vector<GradientForm<float>> GradientFormsOf(const OpContext&);
template std::vector<GradientForm<double>> GradientFormsOf(const OpContext&);

}  // namespace skiff
