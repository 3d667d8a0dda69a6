#include "framework/autodiff/block_backward.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/analysis/nested_blocks.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

bool CanHaveGradient(const Var& var) {
  const bool holds_numbers = var.kind == VarKind::kLoDTensor ||
                             var.kind == VarKind::kSelectedRows ||
                             var.kind == VarKind::kLoDTensorArray;
  return holds_numbers && IsFloat(var.dtype);
}

// Updates of parameters and learning rates aren't part of the function that is differentiated: what
// they write counts as given.
bool IsOutsideOfTheFunction(const Op& op) {
  return (op.role() & (kRoleOptimize | kRoleLRSched)) != 0;
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool WritesNothing(const Op& op) { return op.OutputNames().empty(); }

// Fluid knows the defaults of forward ops only: in its programs a gradient op states them all.
void StateDefaults(const OpDef* def, Op* op) {
  if (def == nullptr) return;
  for (const AttrDef& attr : def->attrs) {
    if (attr.default_value && !op->HasAttr(attr.name)) op->SetAttr(attr.name, *attr.default_value);
  }
}

}  // namespace

const std::string& BackwardNames::Gradient(const std::string& variable) {
  const auto found = gradients_.find(variable);
  if (found != gradients_.end()) return found->second;
  std::string name = GradName(variable);
  bool taken = false;
  for (size_t b = 0; b < program_->block_count(); ++b) {
    taken = taken || program_->block(static_cast<int32_t>(b))->FindLocalVar(name) != nullptr;
  }
  if (taken) name = program_->UniqueName(name);
  return gradients_.emplace(variable, std::move(name)).first->second;
}

std::string BackwardNames::Contribution(const std::string& variable) {
  return StrCat(Gradient(variable), "@RENAME@", contribution_counts_[variable]++);
}

BlockBackward::BlockBackward(const OpRegistry& registry, BackwardNames* names, const Block& forward,
                             Filter leaf_wants, Filter excluded)
    : registry_(registry),
      names_(names),
      forward_(forward),
      leaf_wants_(std::move(leaf_wants)),
      excluded_(std::move(excluded)),
      definitions_(FindDefinitions(registry, forward)) {
  for (const auto& op : forward_.ops()) RecordForwardOp(*op);
}

void BlockBackward::RecordForwardOp(const Op& op) {
  const OpDef* def = registry_.Find(op.type);
  NameSet wanted;
  bool any_wanted = false;
  for (const SlotArguments& slot : op.inputs) {
    const SlotDef* slot_def = def == nullptr ? nullptr : def->FindInput(slot.slot);
    const bool reads_data = slot_def == nullptr || !slot_def->shape_only;
    for (const std::string& x : slot.arguments) {
      if (x == kEmptyVarName || !WantsGradient(x)) continue;
      wanted.insert(x);
      any_wanted = any_wanted || reads_data;
    }
  }
  const bool given = IsOutsideOfTheFunction(op);
  for (const std::string& y : op.OutputNames()) {
    const Var* var = forward_.FindVar(y);
    wants_[y] =
        given ? leaf_wants_(forward_, y)
              : any_wanted && var != nullptr && CanHaveGradient(*var) && !excluded_(forward_, y);
  }
  wanted_.push_back(std::move(wanted));
}

bool BlockBackward::WantsGradient(const std::string& x) const {
  const auto found = wants_.find(x);
  if (found != wants_.end()) return found->second;
  const Var* var = forward_.FindVar(x);
  return var != nullptr && CanHaveGradient(*var) && leaf_wants_(forward_, x);
}

int64_t BlockBackward::LastWriter(const std::string& x) const {
  const Var* var = VisibleVars(forward_).Find(x).var;
  const Definition* last = definitions_.Before(forward_.ops().size(), var);
  if (last == nullptr) return -1;
  return last->updates.empty() ? last->first : static_cast<int64_t>(last->updates.back());
}

void BlockBackward::SeedWithOp(const std::string& x, Op op) {
  op.outputs.front().arguments = {names_->Gradient(x)};
  forward_of_[names_->Gradient(x)] = x;
  made_.push_back(std::move(op));
  open_[x].push_back({.op = static_cast<int64_t>(made_.size()) - 1});
}

void BlockBackward::SeedFromOutside(const std::string& x) { open_[x].push_back({}); }

void BlockBackward::Differentiate(size_t end) {
  for (size_t position = end; position-- > 0;) DifferentiateOp(position);
  std::vector<std::string> rest;
  for (const auto& [x, contributions] : open_) rest.push_back(x);
  for (const std::string& x : rest) Finish(x);
}

void BlockBackward::DifferentiateOp(size_t position) {
  const Op& op = *forward_.ops()[position];
  const NameSet& wanted = wanted_[position];
  if (IsOutsideOfTheFunction(op)) return;
  OutputGradients output_gradients;
  for (const std::string& y : op.OutputNames()) {
    if (open_.contains(y)) output_gradients[y] = Finish(y);
  }
  if (output_gradients.empty() || wanted.empty()) return;
  const OpDef& def = registry_.Get(op.type);
  SKIFF_ENFORCE(def.grad != nullptr, kUnimplemented, DescribeOp(op, forward_.index(), position),
                ": the gradient of \"", output_gradients.begin()->first,
                "\" is needed, but the op has none: ", def.no_gradient_reason,
                "; mark the variable stop_gradient if that is intended");
  const GradientNames names(op);
  for (Op& gradient_op : GradientOps(op, wanted, output_gradients)) {
    if (WritesNothing(gradient_op)) continue;
    AddGradientOp(position, names, std::move(gradient_op), &output_gradients);
  }
}

std::vector<Op> BlockBackward::GradientOps(const Op& op, const NameSet& wanted,
                                           const OutputGradients& output_gradients) {
  const auto wants = [&](const std::string& x) { return wanted.contains(x); };
  const auto has = [&](const std::string& y) { return output_gradients.contains(y); };
  const auto sub_block = [&](int32_t block) {
    return DifferentiateSubBlock(op, wanted, output_gradients, block);
  };
  const OpDef& def = registry_.Get(op.type);
  return def.grad(GradContext(op, def, wants, has, sub_block));
}

BlockBackward::GradientNames::GradientNames(const Op& forward) {
  for (const std::string& x : forward.InputNames()) inputs[GradName(x)] = x;
  for (const std::string& y : forward.OutputNames()) outputs[GradName(y)] = y;
}

void BlockBackward::AddGradientOp(size_t position, const GradientNames& names, Op gradient_op,
                                  OutputGradients* output_gradients) {
  const Op& forward = *forward_.ops()[position];
  ResolveInputs(position, names, &gradient_op, output_gradients);
  const int64_t index = Make(std::move(gradient_op), forward);
  RecordOutputs(names, wanted_[position], index);
}

void BlockBackward::ResolveInputs(size_t position, const GradientNames& names, Op* gradient_op,
                                  OutputGradients* output_gradients) {
  const Op& forward = *forward_.ops()[position];
  for (SlotArguments& slot : gradient_op->inputs) {
    for (std::string& argument : slot.arguments) {
      const auto found = names.outputs.find(argument);
      if (found == names.outputs.end()) {
        CheckNotOverwritten(position, *gradient_op, slot.slot, argument);
        continue;
      }
      const std::string& y = found->second;
      if (!output_gradients->contains(y)) (*output_gradients)[y] = FillZeros(forward, y);
      argument = output_gradients->at(y);
    }
  }
}

void BlockBackward::CheckNotOverwritten(size_t position, const Op& gradient_op,
                                        const std::string& slot, const std::string& name) const {
  const Op& forward = *forward_.ops()[position];
  const bool is_input = Contains(forward.InputNames(), name);
  if (!is_input && !Contains(forward.OutputNames(), name)) return;
  // What a sub-block does to a variable of an outer block, iteration by iteration, is the concern
  // of the op that runs it.
  if (forward_.FindLocalVar(name) == nullptr) return;
  const Var* var = VisibleVars(forward_).Find(name).var;
  const OpDef* gradient_def = registry_.Find(gradient_op.type);
  const SlotDef* slot_def = gradient_def == nullptr ? nullptr : gradient_def->FindInput(slot);
  if (slot_def != nullptr && slot_def->shape_only) return;

  // An op that writes what it reads has two definitions under one name: the slot tells which.
  const bool as_output =
      !is_input || (Contains(forward.Output(slot), name) && !Contains(forward.Input(slot), name));
  const size_t since = as_output ? position + 1 : position;
  const Definition* definition = definitions_.Before(since, var);
  if (definition == nullptr) return;
  const std::optional<size_t> overwriter = definitions_.NextWrite(*definition, since);
  if (!overwriter) return;
  Throw(ErrorCode::kFailedPrecondition, DescribeOp(forward, forward_.index(), position),
        ": its gradient op ", gradient_op.type, " reads \"", name, "\" (slot ", slot,
        "), which is overwritten later by ",
        DescribeOp(*forward_.ops()[*overwriter], forward_.index(), *overwriter),
        "; let that op write another variable");
}

std::string BlockBackward::FillZeros(const Op& forward, const std::string& y) {
  const std::string& gradient = names_->Gradient(y);
  forward_of_[gradient] = y;
  Op op("fill_zeros_like");
  op.SetInput("X", {y}).SetOutput("Out", {gradient});
  Make(std::move(op), forward);
  return gradient;
}

void BlockBackward::RecordOutputs(const GradientNames& names, const NameSet& wanted,
                                  int64_t made_index) {
  Op& op = made_[static_cast<size_t>(made_index)];
  for (size_t slot = 0; slot < op.outputs.size(); ++slot) {
    std::vector<std::string>& arguments = op.outputs[slot].arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto found = names.inputs.find(arguments[i]);
      if (found == names.inputs.end()) continue;
      const std::string& x = found->second;
      if (!wanted.contains(x)) {
        arguments[i] = kEmptyVarName;
        continue;
      }
      open_[x].push_back({made_index, slot, i});
    }
  }
}

std::string& BlockBackward::ArgumentOf(const Contribution& contribution) {
  Op& op = made_[static_cast<size_t>(contribution.op)];
  return op.outputs[contribution.slot].arguments[contribution.argument];
}

std::string BlockBackward::Finish(const std::string& x) {
  const auto node = open_.extract(x);
  const std::vector<Contribution>& contributions = node.mapped();
  const std::string& gradient = names_->Gradient(x);
  forward_of_[gradient] = x;
  if (contributions.size() == 1) {
    if (contributions[0].op >= 0) ArgumentOf(contributions[0]) = gradient;
    return gradient;
  }
  Op sum("sum");
  std::vector<std::string> terms;
  int64_t last = -1;
  for (const Contribution& contribution : contributions) {
    last = std::max(last, contribution.op);
    if (contribution.op < 0) {
      terms.push_back(gradient);
      continue;
    }
    terms.push_back(names_->Contribution(x));
    forward_of_[terms.back()] = x;
    ArgumentOf(contribution) = terms.back();
  }
  sum.SetInput("X", terms).SetOutput("Out", {gradient});
  sum.SetAttr(kOpRoleAttr, kRoleBackward);
  sum.site = made_[static_cast<size_t>(last)].site;
  sums_.emplace_back(static_cast<size_t>(last), std::move(sum));
  return gradient;
}

int64_t BlockBackward::Make(Op op, const Op& forward) {
  op.id = -1;
  op.is_target = false;
  op.site = forward.site;
  op.attrs.erase(kOpRoleVarAttr);
  StateDefaults(registry_.Find(op.type), &op);
  op.SetAttr(kOpRoleAttr, kRoleBackward);
  if (forward.HasAttr(kOpNamescopeAttr)) {
    op.SetAttr(kOpNamescopeAttr, forward.Attr<std::string>(kOpNamescopeAttr));
  }
  made_.push_back(std::move(op));
  return static_cast<int64_t>(made_.size()) - 1;
}

int32_t BlockBackward::DifferentiateSubBlock(const Op& op, const NameSet& wanted,
                                             const OutputGradients& output_gradients,
                                             int32_t sub_block) {
  Program* program = forward_.program();
  const Block& block = *program->block(sub_block);
  // A name that the op reads from outside wants what it wants here; what only exists inside follows
  // the usual rule.
  const auto leaf_wants = [&](const Block& inner, const std::string& x) {
    return inner.FindLocalVar(x) == nullptr ? wanted.contains(x) : leaf_wants_(inner, x);
  };
  BlockBackward inner(registry_, names_, block, leaf_wants, excluded_);
  Block* target = program->AppendBlock(gradient_block_parent_);
  target->forward_block_index = sub_block;
  inner.set_gradient_block_parent(target->index());
  for (const auto& [y, gradient] : output_gradients) {
    if (inner.LastWriter(y) >= 0 && Contains(op.OutputNames(), y)) inner.SeedFromOutside(y);
  }
  inner.Differentiate(block.ops().size());
  inner.AppendTo(target, /*infer=*/false);
  return target->index();
}

void BlockBackward::CreateGradientVars(const Op& op, Block* target) {
  for (const std::string& name : op.OutputNames()) {
    const auto found = forward_of_.find(name);
    if (target->FindLocalVar(name) != nullptr) continue;
    if (found == forward_of_.end()) {
      target->CreateVar({.name = name});
      continue;
    }
    const Var& forward = *forward_.GetVar(found->second);
    Var gradient{.name = name};
    gradient.kind = forward.kind;
    gradient.dtype = forward.dtype;
    gradient.dims = forward.dims;
    gradient.lod_level = forward.lod_level;
    target->CreateVar(std::move(gradient));
  }
}

void BlockBackward::RestoreGradientShapes(const Op& op, Block* target) {
  for (const std::string& name : op.OutputNames()) {
    const auto found = forward_of_.find(name);
    if (found == forward_of_.end()) continue;
    const Var& forward = *forward_.GetVar(found->second);
    Var* gradient = target->GetVar(name);
    gradient->dtype = forward.dtype;
    gradient->dims = forward.dims;
    gradient->lod_level = forward.lod_level;
  }
}

void BlockBackward::AppendTo(Block* target, bool infer) {
  const auto append = [&](Op op) {
    CreateGradientVars(op, target);
    Op* appended = target->AppendOp(std::move(op));
    if (!infer) {
      CheckOp(registry_.Get(appended->type), *appended);
      return;
    }
    InferOp(registry_, target, appended);
    // A shape rule may know less than the forward variable, which the gradient mirrors.
    RestoreGradientShapes(*appended, target);
  };
  std::stable_sort(sums_.begin(), sums_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  auto sum = sums_.begin();
  for (size_t i = 0; i < made_.size(); ++i) {
    append(std::move(made_[i]));
    for (; sum != sums_.end() && sum->first == i; ++sum) append(std::move(sum->second));
  }
  made_.clear();
  sums_.clear();
}

}  // namespace skiff
