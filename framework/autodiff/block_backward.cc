// Reverse-mode differentiation of a block, in three passes. Forward: decide for each op which of
// its inputs want a gradient, that is, lead back to a leaf that wants one. Backward: visit the ops
// from last to first; when an op is reached, all readers of its outputs are done, so the
// contributions to their gradients are complete and are added up (Finish); then the op's own
// gradient ops contribute to the gradients of its inputs. Last: append all ops to the program.
//
// open_ holds, by variable, the contributions to the gradient of its current definition. Taking
// them out in Finish is what keeps several definitions of one name apart.
#include "framework/autodiff/block_backward.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/analysis/nested_blocks.h"
#include "framework/analysis/op_uses.h"
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

// Updates of parameters and learning rates aren't part of the function to differentiate: what they
// write counts as given.
bool IsOutsideOfTheFunction(const Op& op) {
  return (op.role() & (kRoleOptimize | kRoleLRSched)) != 0;
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool WritesNothing(const Op& op) { return op.OutputNames().empty(); }

// Fluid has defaults for forward ops only, so in its programs a gradient op states all attributes.
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
  // An earlier AppendBackward may have used the name.
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
  // In program order, so that wants_ always says what the latest definition wants.
  wanted_.resize(forward_.ops().size());
  for (size_t i = 0; i < forward_.ops().size(); ++i) RecordForwardOp(i);
}

void BlockBackward::RecordForwardOp(size_t position) {
  const Op& op = *forward_.ops()[position];
  if (!op.SubBlocks().empty()) return RecordOpWithBlocks(position);
  const OpDef* def = registry_.Find(op.type);
  NameSet& wanted = wanted_[position];
  bool any_wanted = false;
  for (const SlotArguments& slot : op.inputs) {
    const SlotDef* slot_def = def == nullptr ? nullptr : def->FindInput(slot.slot);
    const bool reads_data = slot_def == nullptr || !slot_def->shape_only;
    for (const std::string& x : slot.arguments) {
      if (x == kEmptyVarName || !WantsGradient(x)) continue;
      wanted.insert(x);
      // An input of which only the shape is read doesn't influence the outputs.
      any_wanted = any_wanted || reads_data;
    }
  }
  const bool given = IsOutsideOfTheFunction(op);
  for (const std::string& y : op.OutputNames()) {
    const Var* var = forward_.FindVar(y);
    if (var == nullptr) continue;
    wants_[var] =
        given ? leaf_wants_(*var) : any_wanted && CanHaveGradient(*var) && !excluded_(*var);
  }
}

// What the blocks capture counts whether or not the op's slots name it. They may run zero times: a
// variable that they write may keep the value from before, and its wish for a gradient.
void BlockBackward::RecordOpWithBlocks(size_t position) {
  const bool given = IsOutsideOfTheFunction(*forward_.ops()[position]);
  const OpUses uses = UsesOf(registry_, forward_, position);
  const bool any_wanted = std::ranges::any_of(
      uses.vars, [&](const VarUse& use) { return use.reads_data && WantsGradient(*use.var); });
  for (const VarUse& use : uses.vars) {
    if (!use.writes) continue;
    const Var& var = *use.var;
    const bool computed_from_wanted = any_wanted && CanHaveGradient(var) && !excluded_(var);
    wants_[&var] = given ? leaf_wants_(var) : computed_from_wanted || WantsGradient(var);
  }
}

bool BlockBackward::WantsGradient(const std::string& x) const {
  const Var* var = forward_.FindVar(x);
  return var != nullptr && WantsGradient(*var);
}

bool BlockBackward::WantsGradient(const Var& var) const {
  const auto found = wants_.find(&var);
  if (found != wants_.end()) return found->second;
  return CanHaveGradient(var) && leaf_wants_(var);
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

void BlockBackward::Differentiate(size_t end) {
  for (size_t position = end; position-- > 0;) DifferentiateOp(position);
  std::vector<std::string> rest;
  for (const auto& [x, contributions] : open_) rest.push_back(x);
  // The gradients that are still open are those of leaves: parameters and feeds.
  for (const std::string& x : rest) Finish(x);
}

void BlockBackward::DifferentiateOp(size_t position) {
  const Op& op = *forward_.ops()[position];
  const NameSet& wanted = wanted_[position];
  if (IsOutsideOfTheFunction(op)) return;
  if (!op.SubBlocks().empty()) return CheckNoGradientThroughBlocks(position);
  OutputGradients output_gradients;
  for (const std::string& y : op.OutputNames()) {
    // All readers of this definition of y come later in the program and are done, so its gradient
    // is complete. What earlier ops contribute to y from now on belongs to the definition before.
    if (open_.contains(y)) output_gradients[y] = Finish(y);
  }
  // The op doesn't influence the loss, or no input wants a gradient.
  if (output_gradients.empty() || wanted.empty()) return;
  const OpDef& def = registry_.Get(op.type);
  SKIFF_ENFORCE(def.grad != nullptr, kUnimplemented, DescribeOp(op, forward_.index(), position),
                ": the gradient of \"", output_gradients.begin()->first,
                "\" is needed, but the op has none: ", def.no_gradient_reason,
                "; mark the variable stop_gradient if that is intended");
  const GradientNames names(op);
  for (Op& gradient_op : GradientOps(op, wanted)) {
    // All its outputs are unwanted.
    if (WritesNothing(gradient_op)) continue;
    AddGradientOp(position, names, std::move(gradient_op), &output_gradients);
  }
}

void BlockBackward::CheckNoGradientThroughBlocks(size_t position) const {
  for (const VarUse& use : UsesOf(registry_, forward_, position).vars) {
    const bool leads_to_loss =
        use.writes && use.block == &forward_ && open_.contains(use.var->name);
    SKIFF_ENFORCE(!leads_to_loss, kUnimplemented,
                  DescribeOp(*forward_.ops()[position], forward_.index(), position),
                  ": the gradient of \"", use.var->name,
                  "\" is needed, but the op runs a block of ops (a loop or a branch), and Skiff "
                  "doesn't differentiate those yet; mark the variable stop_gradient if that is "
                  "intended");
  }
}

std::vector<Op> BlockBackward::GradientOps(const Op& op, const NameSet& wanted) {
  const auto wants = [&](const std::string& x) { return wanted.contains(x); };
  const OpDef& def = registry_.Get(op.type);
  return def.grad(GradContext(op, def, wants));
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
      // The loss doesn't depend on this output, so its gradient is 0. The tensor is made once, even
      // if several gradient ops of the op read it.
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
  const Var* var = VisibleVars(forward_).Find(name).var;
  const OpDef* gradient_def = registry_.Find(gradient_op.type);
  const SlotDef* slot_def = gradient_def == nullptr ? nullptr : gradient_def->FindInput(slot);
  if (slot_def != nullptr && slot_def->shape_only) return;

  // If an op writes a variable that it reads, the name means two definitions. The slot tells which
  // one.
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
  // From here on, contributions to x belong to its previous definition.
  const auto node = open_.extract(x);
  const std::vector<Contribution>& contributions = node.mapped();
  const std::string& gradient = names_->Gradient(x);
  forward_of_[gradient] = x;
  if (contributions.size() == 1) {
    // A single contribution is the gradient itself and needs no sum.
    ArgumentOf(contributions[0]) = gradient;
    return gradient;
  }
  Op sum("sum");
  std::vector<std::string> terms;
  int64_t last = -1;
  for (const Contribution& contribution : contributions) {
    // After the last contribution, so that the sum comes before every reader of the gradient.
    last = std::max(last, contribution.op);
    terms.push_back(names_->Contribution(x));
    forward_of_[terms.back()] = x;
    ArgumentOf(contribution) = terms.back();
  }
  sum.SetInput("X", terms).SetOutput("Out", {gradient});
  sum.SetAttr(kOpRoleAttr, kRoleBackward);
  sum.site = made_[static_cast<size_t>(last)].site;
  // AppendTo inserts the sum. Inserting it here would shift the indices that open contributions
  // hold.
  sums_.emplace_back(static_cast<size_t>(last), std::move(sum));
  return gradient;
}

int64_t BlockBackward::Make(Op op, const Op& forward) {
  // The op is a new one: Block::AppendOp gives it an id of its own.
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

void BlockBackward::AppendTo(Block* target) {
  const auto append = [&](Op op) {
    CreateGradientVars(op, target);
    Op* appended = target->AppendOp(std::move(op));
    InferOp(registry_, target, appended);
    // The shape rule may know less than is declared for the forward variable, whose shape the
    // gradient has.
    RestoreGradientShapes(*appended, target);
  };
  // Several sums may belong after one op; they keep the order in which they were made, so that
  // equal programs get equal gradients.
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
