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
#include "framework/analysis/running_state.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/block_rule.h"
#include "framework/op/grad_name.h"

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

// Several ops write elements of an array, and each gradient op adds to the elements of the array of
// gradients: there is one for all definitions, and it needs no sum.
bool IsArray(const Var& var) { return var.kind == VarKind::kLoDTensorArray; }

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
  for (size_t b = 0; program_ != nullptr && b < program_->block_count(); ++b) {
    taken = taken || program_->block(static_cast<int32_t>(b))->FindLocalVar(name) != nullptr;
  }
  if (taken) name = program_->UniqueName(name);
  return gradients_.emplace(variable, std::move(name)).first->second;
}

std::string BackwardNames::Contribution(const std::string& variable) {
  return StrCat(Gradient(variable), "@RENAME@", contribution_counts_[variable]++);
}

BlockBackward::BlockBackward(const OpRegistry& registry, BlockDifferentiator differentiate_block,
                             BackwardNames* names, const Block& forward, Filter leaf_wants,
                             Filter excluded, Filter wanted_anyway)
    : registry_(registry),
      differentiate_block_(differentiate_block),
      names_(names),
      forward_(forward),
      leaf_wants_(std::move(leaf_wants)),
      excluded_(std::move(excluded)),
      wanted_anyway_(std::move(wanted_anyway)),
      definitions_(FindDefinitions(registry, forward)) {
  // In program order, so that wants_ always says what the latest definition wants.
  wanted_.resize(forward_.ops().size());
  for (size_t i = 0; i < forward_.ops().size(); ++i) RecordForwardOp(i);
}

BlockBackward::~BlockBackward() = default;

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
    const bool wanted_before = IsArray(*var) && WantsGradient(*var);
    if (any_wanted && !given && !CanHaveGradient(*var)) ends_.emplace(position, var);
    const bool wants = any_wanted && CanHaveGradient(*var) && !excluded_(*var);
    wants_[var] = given ? leaf_wants_(*var) : wants || wanted_before || wanted_anyway_(*var);
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
    if (WantsGradient(*use.var)) wanted_[position].insert(use.var->name);
  }
  for (const VarUse& use : uses.vars) {
    if (!use.writes) continue;
    const Var& var = *use.var;
    const bool computed_from_wanted = any_wanted && CanHaveGradient(var) && !excluded_(var);
    const bool had_value = definitions_.Before(position, &var) != nullptr;
    wants_[&var] =
        given ? leaf_wants_(var)
              : computed_from_wanted || (had_value && WantsGradient(var)) || wanted_anyway_(var);
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

std::string BlockBackward::OpsWithoutGradient(const std::string& x) const {
  std::vector<std::string> texts;
  NameSet needed = {x};
  for (size_t position = forward_.ops().size(); position-- > 0;) {
    const Op& op = *forward_.ops()[position];
    const std::vector<std::string> outputs = op.OutputNames();
    const auto is_needed = [&](const std::string& y) { return needed.contains(y); };
    if (std::ranges::none_of(outputs, is_needed)) continue;
    const auto end = ends_.find(position);
    if (end != ends_.end() && is_needed(end->second->name)) {
      const OpDef* def = registry_.Find(op.type);
      const bool has_gradient = def != nullptr && def->grad != nullptr;
      texts.push_back(StrCat(DescribeOp(op, forward_.index(), position), " gives \"",
                             end->second->name, "\" of ", end->second->dtype,
                             has_gradient ? "" : " and has no gradient",
                             has_gradient || def == nullptr ? "" : ": ",
                             has_gradient || def == nullptr ? "" : def->no_gradient_reason));
    }
    for (const std::string& y : outputs) needed.erase(y);
    for (const std::string& y : op.InputNames()) needed.insert(y);
  }
  return Join(texts, "; ");
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

void BlockBackward::SeedFromOutside(const std::string& x) {
  forward_of_[names_->Gradient(x)] = x;
  const Var* var = VisibleVars(forward_).Find(x).var;
  if (var != nullptr && IsArray(*var)) {
    open_arrays_.insert(x);
    return;
  }
  open_[x].push_back({.op = -1});
}

void BlockBackward::SetBody(bool is_loop, std::set<std::string> captured,
                            std::set<std::string> persistables) {
  persistables_ = std::move(persistables);
  is_body_ = true;
  is_loop_ = is_loop;
  captured_ = std::move(captured);
}

void BlockBackward::Differentiate(size_t end) {
  for (size_t position = end; position-- > 0;) DifferentiateOp(position);
  std::vector<std::string> rest;
  for (const auto& [x, contributions] : open_) rest.push_back(x);
  // The gradients that are still open are those of leaves: parameters, feeds, and what a body finds
  // when it begins.
  for (const std::string& x : rest) Finish(x);
  reached_.insert(rest.begin(), rest.end());
  reached_.insert(open_arrays_.begin(), open_arrays_.end());
}

void BlockBackward::DifferentiateOp(size_t position) {
  const Op& op = *forward_.ops()[position];
  const NameSet& wanted = wanted_[position];
  if (IsOutsideOfTheFunction(op)) return;
  if (!op.SubBlocks().empty()) return DifferentiateBlockOp(position);
  OutputGradients output_gradients;
  for (const std::string& y : op.OutputNames()) {
    // All readers of this definition of y come later in the program and are done, so its gradient
    // is complete. What earlier ops contribute to y from now on belongs to the definition before.
    if (open_.contains(y)) output_gradients[y] = Finish(y);
    if (open_arrays_.contains(y)) output_gradients[y] = names_->Gradient(y);
  }
  // The op doesn't influence the loss, or no input wants a gradient.
  if (output_gradients.empty()) return;
  if (wanted.empty()) return ForgetElement(position, &output_gradients);
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

// An element of an array that becomes something that wants no gradient: those who read it mustn't
// count for what was there before. So its gradient is taken all the same.
void BlockBackward::ForgetElement(size_t position, OutputGradients* output_gradients) {
  const Op& op = *forward_.ops()[position];
  for (const std::string& y : op.OutputNames()) {
    const Var* array = VisibleVars(forward_).Find(y).var;
    const bool may_overwrite =
        open_arrays_.contains(y) && (is_loop_ || definitions_.Before(position, array) != nullptr);
    if (!may_overwrite) continue;
    NameSet all;
    for (const std::string& x : op.InputNames()) all.insert(x);
    const GradientNames names(op);
    for (Op& gradient_op : GradientOps(op, all)) {
      ResolveInputs(position, names, &gradient_op, output_gradients);
      for (SlotArguments& slot : gradient_op.outputs) {
        for (std::string& argument : slot.arguments) {
          const std::string x = names.inputs.at(argument);
          argument = names_->Contribution(x);
          forward_of_[argument] = x;
        }
      }
      Make(std::move(gradient_op), op);
    }
  }
}

void BlockBackward::DifferentiateBlockOp(size_t position) {
  const Op& op = *forward_.ops()[position];
  const OpDef* def = registry_.Find(op.type);
  if (def == nullptr || def->block == nullptr) return CheckNoGradientThroughBlocks(position);
  OutputGradients output_gradients;
  std::set<std::string> given;
  for (const std::string& y : op.Output(SlotsOf(def->block->kind).results)) {
    if (open_arrays_.contains(y)) {
      output_gradients[y] = names_->Gradient(y);
    } else if (open_.contains(y)) {
      output_gradients[y] = Finish(y);
    } else {
      continue;
    }
    given.insert(y);
  }
  if (given.empty() || wanted_[position].empty()) return;
  auto gradient = std::make_unique<BlockGradient>(differentiate_block_({.registry = registry_,
                                                                        .outer = forward_,
                                                                        .position = position,
                                                                        .definitions = definitions_,
                                                                        .wanted = wanted_[position],
                                                                        .given = given,
                                                                        .excluded = excluded_}));
  if (WritesNothing(gradient->op)) return;
  if (!gradient->added_inputs.arguments.empty()) {
    added_inputs_.emplace_back(position, gradient->added_inputs);
  }
  GradientNames names(op);
  for (const std::string& x : gradient->added_inputs.arguments) names.inputs[GradName(x)] = x;
  AddGradientOp(position, names, gradient->op, &output_gradients);
  const auto made_index = static_cast<int64_t>(made_.size()) - 1;
  KeepCarriedOutputs(*gradient, made_index);
  blocks_[made_index] = std::move(gradient);
}

// A carried variable of which nobody outside wants the gradient still hands it from one iteration
// to the one before, which Fluid's while_grad does only for outputs that are there.
void BlockBackward::KeepCarriedOutputs(const BlockGradient& gradient, int64_t made_index) {
  Op& made = made_[static_cast<size_t>(made_index)];
  for (SlotArguments& slot : made.outputs) {
    const std::vector<std::string>& wished = gradient.op.Output(slot.slot);
    for (size_t i = 0; i < slot.arguments.size(); ++i) {
      if (slot.arguments[i] != kEmptyVarName || wished[i] == kEmptyVarName) continue;
      const std::string x(ForwardName(wished[i]));
      if (!gradient.carried.contains(x)) continue;
      slot.arguments[i] = names_->Gradient(x);
      forward_of_[slot.arguments[i]] = x;
    }
  }
}

void BlockBackward::CheckNoGradientThroughBlocks(size_t position) const {
  for (const VarUse& use : UsesOf(registry_, forward_, position).vars) {
    const bool leads_to_loss =
        use.writes && use.block == &forward_ && open_.contains(use.var->name);
    SKIFF_ENFORCE(!leads_to_loss, kUnimplemented,
                  DescribeOp(*forward_.ops()[position], forward_.index(), position),
                  ": the gradient of \"", use.var->name,
                  "\" is needed, but the op runs a block of ops and its definition doesn't say "
                  "how; mark the variable stop_gradient if that is intended");
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
        argument = NameOfRead(position, *gradient_op, slot.slot, argument);
        continue;
      }
      const std::string& y = found->second;
      if (IsArray(*VisibleVars(forward_).Find(y).var)) {
        argument = names_->Gradient(y);
        continue;
      }
      // The loss doesn't depend on this output, so its gradient is 0. The tensor is made once, even
      // if several gradient ops of the op read it.
      if (!output_gradients->contains(y)) (*output_gradients)[y] = FillZeros(forward, y);
      argument = output_gradients->at(y);
    }
  }
}

// Returns the name by which a gradient op reads a forward value: that of a copy if the block of a
// loop overwrites the variable. Throws an Error if another block does.
std::string BlockBackward::NameOfRead(size_t position, const Op& gradient_op,
                                      const std::string& slot, const std::string& name) {
  const Op& forward = *forward_.ops()[position];
  const bool is_input = Contains(forward.InputNames(), name);
  if (!is_input && !Contains(forward.OutputNames(), name)) return name;
  // Fluid's gradient ops name statistics that they don't read. So another op may update them, too.
  const OpDef* def = registry_.Find(forward.type);
  if (def != nullptr && IsRunningState(*def, slot) && UpdatesRunningState(*def, forward)) {
    return name;
  }
  const Var* var = VisibleVars(forward_).Find(name).var;
  const OpDef* gradient_def = registry_.Find(gradient_op.type);
  const SlotDef* slot_def = gradient_def == nullptr ? nullptr : gradient_def->FindInput(slot);
  if (slot_def != nullptr && slot_def->shape_only) return name;

  // If an op writes a variable that it reads, the name means two definitions. The slot tells which
  // one.
  const bool as_output =
      !is_input || (Contains(forward.Output(slot), name) && !Contains(forward.Input(slot), name));
  const size_t since = as_output ? position + 1 : position;
  const Definition* definition = definitions_.Before(since, var);
  if (definition == nullptr) return name;
  const std::optional<size_t> overwriter = definitions_.NextWrite(*definition, since);
  // The gradient block of a loop finds a variable of an outer block as it was when the iteration
  // began.
  const bool is_as_at_begin = is_loop_ && definition->first < 0 && definition->updates.empty() &&
                              !IsCounter(forward_, name);
  const bool is_moved =
      persistables_.contains(name) || (captured_.contains(name) && !is_as_at_begin);
  if (is_body_ && (is_moved || (overwriter && !captured_.contains(name)))) {
    return CopyBefore(since, *var);
  }
  if (!overwriter || is_body_) return name;
  const Op& writer = *forward_.ops()[*overwriter];
  const bool is_update = (writer.role() & kRoleOptimize) != 0;
  Throw(ErrorCode::kFailedPrecondition, DescribeOp(forward, forward_.index(), position),
        ": its gradient op ", gradient_op.type, " reads \"", name, "\" (slot ", slot,
        "), which is overwritten later by ", DescribeOp(writer, forward_.index(), *overwriter),
        is_update
            ? ", an update of another optimizer; build the forward pass of this loss after the "
              "Minimize of that optimizer, or minimize the sum of both losses at once"
            : "; let that op write another variable");
}

std::string BlockBackward::CopyBefore(size_t position, const Var& var) {
  const auto known = std::ranges::find_if(copies_, [&](const Copy& copy) {
    return copy.position == position && copy.from == var.name;
  });
  if (known != copies_.end()) return known->to;
  const auto is_taken = [&](const std::string& name) {
    return forward_.FindLocalVar(name) != nullptr ||
           std::ranges::count(copies_, name, &Copy::to) > 0;
  };
  int number = 0;
  std::string to = StrCat(var.name, "@COPY@", number);
  while (is_taken(to)) to = StrCat(var.name, "@COPY@", ++number);
  copies_.push_back({.position = position, .from = var.name, .to = to});
  return to;
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
      if (IsArray(*VisibleVars(forward_).Find(x).var)) {
        arguments[i] = names_->Gradient(x);
        forward_of_[arguments[i]] = x;
        open_arrays_.insert(x);
        continue;
      }
      open_[x].push_back({made_index, slot, i});
    }
  }
}

// Requires a contribution of an op.
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
    if (contributions[0].op >= 0) ArgumentOf(contributions[0]) = gradient;
    return gradient;
  }
  Op sum("sum");
  std::vector<std::string> terms;
  int64_t last = -1;
  for (const Contribution& contribution : contributions) {
    // After the last contribution, so that the sum comes before every reader of the gradient.
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
    // A branch adds to the array outside. In a loop, the op ties both arrays.
    if (IsArray(forward) && !is_loop_ && target->FindVar(name) != nullptr) continue;
    Var gradient{.name = name};
    gradient.kind = forward.kind;
    gradient.dtype = forward.dtype;
    gradient.dims = forward.dims;
    gradient.lod_level = forward.lod_level;
    target->CreateVar(std::move(gradient));
  }
}

void BlockBackward::AppendBlock(BlockGradient* gradient, Op* op, Block* target) {
  Block* block = target->program()->AppendBlock(target->index());
  block->forward_block_index = gradient->forward->index();
  for (const std::string& x : gradient->seeds) {
    // A branch reads the gradient outside, if that has the name.
    const bool is_outside = !gradient->is_loop && target->FindVar(GradName(x)) != nullptr;
    if (is_outside) continue;
    const Var& forward = *VisibleVars(*gradient->forward).Find(x).var;
    Var seed{.name = GradName(x)};
    if (IsArray(forward)) seed.kind = forward.kind;
    seed.dtype = forward.dtype;
    seed.dims = forward.dims;
    seed.lod_level = forward.lod_level;
    block->CreateVar(std::move(seed));
  }
  gradient->inner->AppendTo(block);
  for (const std::string& x : gradient->reset) {
    Op zero("fill_zeros_like");
    zero.SetInput("X", {GradName(x)}).SetOutput("Out", {GradName(x)});
    zero.SetAttr(kOpRoleAttr, kRoleBackward);
    zero.site = op->site;
    InferOp(registry_, block, block->AppendOp(std::move(zero)));
  }
  op->SetAttr("sub_block", BlockIndex{block->index()});
  // A gradient that is sparse inside is so outside.
  for (const SlotArguments& slot : op->outputs) {
    for (const std::string& name : slot.arguments) {
      const auto forward = forward_of_.find(name);
      const Var* inner =
          forward == forward_of_.end() ? nullptr : block->FindLocalVar(GradName(forward->second));
      if (inner != nullptr) target->GetVar(name)->kind = inner->kind;
    }
  }
}

void BlockBackward::ChangeForwardBlock(Program* program) {
  Block* forward = program->block(forward_.index());
  for (const auto& [position, added] : added_inputs_) {
    Op* op = forward->ops()[position].get();
    std::vector<std::string> arguments = op->Input(added.slot);
    for (const std::string& name : added.arguments) arguments.push_back(name);
    op->SetInput(added.slot, std::move(arguments));
  }
  // From the back, so that positions stay right.
  std::ranges::stable_sort(copies_, std::ranges::greater(), &Copy::position);
  for (const Copy& copy : copies_) {
    const Var& var = *VisibleVars(*forward).Find(copy.from).var;
    Var to{.name = copy.to};
    to.dtype = var.dtype;
    to.dims = var.dims;
    to.lod_level = var.lod_level;
    forward->CreateVar(std::move(to));
    Op assign("assign");
    assign.SetInput("X", {copy.from}).SetOutput("Out", {copy.to});
    const auto& ops = forward->ops();
    const Op& next = *ops[std::min(copy.position, ops.size() - 1)];
    assign.site = next.site;
    for (const char* attr : {kOpRoleAttr, kOpNamescopeAttr}) {
      const auto found = next.attrs.find(attr);
      if (found != next.attrs.end()) assign.SetAttr(attr, found->second);
    }
    forward->InsertOp(copy.position, std::move(assign));
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
  ChangeForwardBlock(target->program());
  const auto append = [&](Op op, BlockGradient* block) {
    CreateGradientVars(op, target);
    if (block != nullptr) AppendBlock(block, &op, target);
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
    const auto block = blocks_.find(static_cast<int64_t>(i));
    append(std::move(made_[i]), block == blocks_.end() ? nullptr : block->second.get());
    for (; sum != sums_.end() && sum->first == i; ++sum) append(std::move(sum->second), nullptr);
  }
  made_.clear();
  sums_.clear();
}

}  // namespace skiff
