// The choice is the largest set of half variables that the rules allow: all that depend on a source
// begin as half, and what contradicts a rule becomes float32 until nothing does. Each step only
// takes away, so the order of the steps doesn't matter.
#include "framework/precision/precision_choice.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "framework/analysis/nested_blocks.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/block_rule.h"
#include "framework/op/half_arguments.h"

namespace skiff {
namespace {

using Mode = FloatOp::Mode;

bool HoldsFloats(const Var& var) {
  return var.dtype == DType::kFloat32 &&
         (var.kind == VarKind::kLoDTensor || var.kind == VarKind::kSelectedRows ||
          var.kind == VarKind::kLoDTensorArray);
}

Precision PrecisionOf(const FloatOp& op) { return op.def->precision.value_or(Precision::kHigh); }

// Whether the rules say anything about the op.
bool HasRule(const FloatOp& op) {
  const int32_t untouched = kRoleOptimize | kRoleLRSched;
  return op.def != nullptr && op.def->block == nullptr && PrecisionOf(op) != Precision::kNone &&
         (op.op->role() & untouched) == 0;
}

// Returns whether the op makes nothing but constants, which can be rounded as well as anything
// else: it reads no data.
bool MakesConstants(const FloatOp& op) {
  if (op.def == nullptr || op.def->block != nullptr) return false;
  return std::ranges::all_of(op.def->inputs, [&](const SlotDef& slot) {
    const std::vector<std::string>& names = op.op->Input(slot.name);
    const bool is_absent =
        std::ranges::all_of(names, [](const std::string& name) { return name == kEmptyVarName; });
    return is_absent || slot.shape_only || !slot.attribute.empty();
  });
}

// Whether something reads the variable before an op writes it: what a caller feeds, or the scope
// holds. An array is empty at first.
bool IsReadBeforeWritten(const FloatVariable& variable) {
  return variable.var->kind != VarKind::kLoDTensorArray && !variable.readers.empty() &&
         !variable.writers.empty() && variable.readers.front() <= variable.writers.front();
}

// Orders variables by their elements. A dim that only a run knows counts more than any other.
std::pair<int64_t, double> SizeOf(const Var& var) {
  int64_t unknown = 0;
  double known = 1;
  for (const int64_t dim : var.dims) {
    if (dim < 0) {
      ++unknown;
    } else {
      known *= static_cast<double>(dim);
    }
  }
  return {unknown, known};
}

bool IsInScope(const Op& op, const std::string& entry) {
  return op.Attr<std::string>(kOpNamescopeAttr, {}).find(entry) != std::string::npos;
}

bool IsParameterNamed(const Var& var, const std::string& entry) {
  return var.is_parameter && var.name.find(entry) != std::string::npos;
}

void CheckFits(bool fits, const std::string& entry) {
  SKIFF_ENFORCE(fits && !entry.empty(), kNotFound, "keep_float32 has \"", entry,
                "\": expected the type of an op of the program, or a part of a name scope or of "
                "the name of a parameter");
}

bool FitsOpOf(const Block& block, const std::string& entry) {
  return std::ranges::any_of(block.ops(), [&](const auto& op) {
    if ((op->role() & (kRoleBackward | kRoleOptimize | kRoleLRSched)) != 0) return false;
    const auto is_parameter = [&](const std::string& name) {
      const Var* var = block.FindVar(name);
      return var != nullptr && IsParameterNamed(*var, entry);
    };
    return op->type == entry || IsInScope(*op, entry) ||
           std::ranges::any_of(op->InputNames(), is_parameter);
  });
}

}  // namespace

void CheckKeepFloat32(const Program& program, const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    bool fits = false;
    for (size_t i = 0; i < program.block_count() && !fits; ++i) {
      fits = FitsOpOf(*program.block(static_cast<int32_t>(i)), entry);
    }
    CheckFits(fits, entry);
  }
}

PrecisionChoice::PrecisionChoice(const OpRegistry& registry, const Program& program,
                                 const PrecisionOptions& options, const Names& names)
    : registry_(registry), options_(options), names_(names) {
  SKIFF_ENFORCE(IsHalf(options.dtype), kInvalidArgument, "a program can't be rewritten to ",
                options.dtype, ", expected bfloat16 or float16");
  AddBlock(program.root());
  MarkKept();
  Settle();
}

// ---- the graph

void PrecisionChoice::AddBlock(Block* block) {
  for (size_t i = 0; i < block->ops().size(); ++i) {
    const Op& op = *block->ops()[i];
    SKIFF_ENFORCE((op.role() & kRoleBackward) == 0, kFailedPrecondition,
                  DescribeOp(op, block->index(), i),
                  ": the program has gradient ops already, expected one to which Minimize hasn't "
                  "added any");
    // Checks the nesting, too.
    if (!op.SubBlocks().empty()) BlocksRunBy(*block, i);
    AddOp(block, i);
    for (const int32_t index : op.SubBlocks()) {
      Block* inside = block->program()->block(index);
      if (runners_.emplace(inside, std::pair(block, i)).second) AddBlock(inside);
    }
  }
}

void PrecisionChoice::AddOp(Block* block, size_t position) {
  FloatOp node;
  node.op = block->ops()[position].get();
  node.def = registry_.Find(node.op->type);
  node.block = block;
  node.position = position;
  if (node.def != nullptr) {
    try {
      CheckOp(*node.def, *node.op);
    } catch (const Error& error) {
      throw error.WithContext(DescribeOp(*node.op, block->index(), position));
    }
  }
  const bool runs_block = node.def != nullptr && node.def->block != nullptr;
  if (runs_block) {
    TieStates(*node.op, *node.def, &node);
  } else {
    const OpDef* def = node.def;
    node.inputs = ArgumentsOf(*block, node.op->inputs, [&](const std::string& slot) {
      return def == nullptr ? nullptr : def->FindInput(slot);
    });
    node.outputs = ArgumentsOf(*block, node.op->outputs, [&](const std::string& slot) {
      return def == nullptr ? nullptr : def->FindOutput(slot);
    });
  }
  if (node.inputs.empty() && node.outputs.empty()) return;
  const size_t index = ops_.size();
  const auto note = [&](std::vector<size_t>* of) {
    if (of->empty() || of->back() != index) of->push_back(index);
  };
  for (const FloatArgument& input : node.inputs) note(&variables_[input.variable].readers);
  for (const FloatArgument& output : node.outputs) note(&variables_[output.variable].writers);
  ops_.push_back(std::move(node));
}

std::vector<FloatArgument> PrecisionChoice::ArgumentsOf(const Block& block, const Slots& given,
                                                        const FindSlot& find) {
  std::vector<FloatArgument> arguments;
  for (const SlotArguments& slot : given) {
    for (size_t i = 0; i < slot.arguments.size(); ++i) {
      const int variable = Find(block, slot.arguments[i]);
      if (variable < 0) continue;
      arguments.push_back({.slot = find(slot.slot),
                           .slot_name = slot.slot,
                           .index = i,
                           .variable = static_cast<size_t>(variable)});
    }
  }
  return arguments;
}

// Returns the index of the variable that a name means in a block, -1 if it holds no float32.
int PrecisionChoice::Find(const Block& block, const std::string& name) {
  if (name == kEmptyVarName) return -1;
  VisibleVars visible(block);
  const VisibleVar found = visible.Find(name);
  if (found.var == nullptr || !HoldsFloats(*found.var)) return -1;
  const auto [it, is_new] = index_.try_emplace(found.var, variables_.size());
  if (is_new) {
    Block* declaring = block.program()->block(found.block->index());
    variables_.push_back({.var = declaring->FindLocalVar(name),
                          .block = declaring,
                          .writers = {},
                          .readers = {},
                          .group = variables_.size()});
  }
  return static_cast<int>(it->second);
}

// What a `recurrent` sets inside: parts of its inputs, under the same names, and the states.
void PrecisionChoice::TieStates(const Op& op, const OpDef& def, FloatOp* node) {
  if (def.block->kind != BlockRule::Kind::kRecurrent) return;
  const Block& outside = *node->block;
  for (const int32_t index : op.SubBlocks()) {
    const Block& inside = *outside.program()->block(index);
    for (const std::string& name : op.Input("inputs")) {
      SetByLoop(Find(inside, name), Find(outside, name), 0);
    }
    for (const std::string& name : op.Output(SlotsOf(def.block->kind).results)) {
      SetByLoop(Find(outside, name), Find(inside, name), node->position + 1);
    }
    using Names = std::vector<std::string>;
    const Names before = op.Attr<Names>("ex_states", {});
    const Names after = op.Attr<Names>("states", {});
    const Names& first = op.Input("initial_states");
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      const int state = Find(inside, before[i]);
      if (state < 0) continue;
      SetByLoop(state, Find(inside, after[i]), 0);
      const int initial = i < first.size() ? Find(outside, first[i]) : -1;
      if (initial < 0) continue;
      node->inputs.push_back({.slot = def.FindInput("initial_states"),
                              .slot_name = "initial_states",
                              .index = i,
                              .variable = static_cast<size_t>(initial),
                              .like = state});
    }
  }
}

// Notes that the op that runs a block sets a variable to what another one holds, from `position`
// of its block on.
void PrecisionChoice::SetByLoop(int set, int from, size_t position) {
  if (set < 0 || from < 0 || set == from) return;
  variables_[static_cast<size_t>(set)].is_set_by_loop = true;
  variables_[static_cast<size_t>(set)].set_at = position;
  const size_t group = variables_[static_cast<size_t>(from)].group;
  for (FloatVariable& variable : variables_) {
    if (variable.group == group) variable.group = variables_[static_cast<size_t>(set)].group;
  }
}

std::pair<Block*, size_t> PrecisionChoice::RunnerOf(const Block* block) const {
  const auto found = runners_.find(block);
  return found == runners_.end() ? std::pair<Block*, size_t>() : found->second;
}

// ---- what the user keeps

void PrecisionChoice::MarkKept() {
  for (const std::string& entry : options_.keep_float32) {
    bool fits = false;
    for (FloatOp& op : ops_) {
      const auto is_parameter = [&](const FloatArgument& input) {
        return IsParameterNamed(*variables_[input.variable].var, entry);
      };
      if (op.op->type != entry && !IsInScope(*op.op, entry) &&
          std::ranges::none_of(op.inputs, is_parameter)) {
        continue;
      }
      op.is_kept = fits = true;
    }
    CheckFits(fits || names_.may_keep_nothing, entry);
  }
}

// ---- the choice

bool PrecisionChoice::IsConstant(const FloatVariable& variable) const {
  return !variable.writers.empty() && !variable.is_set_by_loop && !variable.var->persistable &&
         std::ranges::all_of(variable.writers,
                             [&](size_t writer) { return MakesConstants(ops_[writer]); });
}

// Whether the variable is a parameter that may become half.
bool PrecisionChoice::IsParameterForHalf(const FloatVariable& variable) const {
  return variable.var->is_parameter && names_.parameters.contains(variable.var->name) &&
         variable.writers.empty() && !variable.readers.empty();
}

// Whether the variable is kept between runs, and may be rounded.
bool PrecisionChoice::IsStateForHalf(const FloatVariable& variable) const {
  return names_.may_round_states && !variable.var->is_parameter && !variable.writers.empty();
}

bool PrecisionChoice::IsHalfIn(const FloatOp& op, const FloatArgument& argument) const {
  if (argument.like >= 0) return variables_[static_cast<size_t>(argument.like)].is_half;
  return op.mode == Mode::kHalf && argument.slot != nullptr && FollowsHalf(*argument.slot);
}

// Returns, by group, whether it depends on an op with kLow or on a parameter that may be half.
std::vector<bool> PrecisionChoice::FindSources() const {
  std::vector<bool> depends(variables_.size());
  for (const FloatVariable& variable : variables_) {
    if (IsParameterForHalf(variable)) depends[variable.group] = true;
  }
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const FloatOp& op : ops_) {
      const auto depends_on = [&](const FloatArgument& input) {
        return FollowsHalf(*input.slot) && depends[variables_[input.variable].group];
      };
      const bool is_source =
          HasRule(op) && !op.is_kept && !op.inputs.empty() &&
          (PrecisionOf(op) == Precision::kLow || std::ranges::any_of(op.inputs, depends_on));
      if (!is_source) continue;
      for (const FloatArgument& output : op.outputs) {
        const size_t group = variables_[output.variable].group;
        has_changed = has_changed || !depends[group];
        depends[group] = true;
      }
    }
  }
  return depends;
}

void PrecisionChoice::Settle() {
  // By group.
  std::vector<bool> is_half = FindSources();
  for (const FloatVariable& variable : variables_) {
    const bool is_result = variable.block == variable.block->program()->root() &&
                           names_.results.contains(variable.var->name);
    const bool is_made =
        (!variable.writers.empty() && !IsReadBeforeWritten(variable)) || variable.is_set_by_loop;
    const bool may_be_half = variable.var->persistable
                                 ? IsParameterForHalf(variable) || IsStateForHalf(variable)
                                 : is_made && !is_result;
    // One that isn't half decides for its group.
    if (!may_be_half) is_half[variable.group] = false;
  }
  for (FloatVariable& variable : variables_) variable.is_half = is_half[variable.group];
  for (FloatOp& op : ops_) {
    if (!HasRule(op) || op.inputs.empty()) continue;
    op.mode = op.is_kept || !NamedDType(*op.def, *op.op).empty() ? Mode::kFloat32 : Mode::kHalf;
  }
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    FindRounded();
    for (FloatOp& op : ops_) {
      if (op.mode != Mode::kHalf || ModeOf(op) == Mode::kHalf) continue;
      op.mode = Mode::kFloat32;
      has_changed = true;
    }
    for (FloatVariable& variable : variables_) {
      if (!variable.is_half || MayStayHalf(variable)) continue;
      for (FloatVariable& other : variables_) {
        if (other.group == variable.group) other.is_half = false;
      }
      has_changed = true;
    }
  }
}

// Returns the array whose elements the op makes; nullptr if it makes none.
const FloatVariable* PrecisionChoice::ArrayWrittenBy(const FloatOp& op) const {
  for (const FloatArgument& output : op.outputs) {
    const FloatVariable& variable = variables_[output.variable];
    if (variable.var->kind == VarKind::kLoDTensorArray) return &variable;
  }
  return nullptr;
}

Mode PrecisionChoice::ModeOf(const FloatOp& op) const {
  // All elements of an array have one dtype, and no op casts an array.
  if (const FloatVariable* array = ArrayWrittenBy(op); array != nullptr) {
    const bool reads_constants = std::ranges::all_of(op.inputs, [&](const FloatArgument& input) {
      return IsConstant(variables_[input.variable]);
    });
    const bool may_be_half = reads_constants || Float32InputOf(op) == nullptr;
    return array->is_half && may_be_half ? Mode::kHalf : Mode::kFloat32;
  }
  switch (PrecisionOf(op)) {
    case Precision::kLow:
      return Mode::kHalf;
    case Precision::kFollow:
      return Float32InputOf(op) == nullptr && Float32OutputOf(op) == nullptr ? Mode::kHalf
                                                                             : Mode::kFloat32;
    default:
      return Float32InputOf(op) == nullptr && IsRounded(op) ? Mode::kHalf : Mode::kFloat32;
  }
}

HalfReport::Float32Op PrecisionChoice::WhyFloat32(const FloatOp& op) const {
  using enum Float32Reason;
  const std::string& type = op.op->type;
  if (op.is_kept) return {.type = type, .reason = kKept, .name = {}};
  if (std::string named = NamedDType(*op.def, *op.op); !named.empty()) {
    return {.type = type, .reason = kNamed, .name = std::move(named)};
  }
  const bool follows = PrecisionOf(op) == Precision::kFollow || ArrayWrittenBy(op) != nullptr;
  if (!follows) return {.type = type, .reason = kRule, .name = {}};
  if (const FloatVariable* input = Float32InputOf(op); input != nullptr) {
    return {.type = type, .reason = kInput, .name = input->var->name};
  }
  const FloatVariable* output = Float32OutputOf(op);
  return {.type = type, .reason = kResult, .name = output == nullptr ? "" : output->var->name};
}

// Without any inputs but parameters, these decide. An op without float inputs of its own, such as
// one that reads only keeps_float32, returns the first input.
const FloatVariable* PrecisionChoice::Float32InputOf(const FloatOp& op) const {
  const FloatVariable* float32 = nullptr;
  const FloatVariable* float32_parameter = nullptr;
  std::pair<int64_t, double> largest(-1, 0);
  bool has_parameter = false;
  for (const FloatArgument& input : op.inputs) {
    const FloatVariable& variable = variables_[input.variable];
    if (!FollowsHalf(*input.slot) || IsConstant(variable)) continue;
    if (variable.var->is_parameter) {
      if (!variable.is_half) float32_parameter = &variable;
      has_parameter = true;
      continue;
    }
    const std::pair<int64_t, double> size = SizeOf(*variable.var);
    if (size < largest) continue;
    if (size > largest) float32 = nullptr;
    if (!variable.is_half) float32 = &variable;
    largest = size;
  }
  if (largest.first >= 0) return float32;
  return has_parameter ? float32_parameter : &variables_[op.inputs.front().variable];
}

// Returns nullptr if all results are variables in half, else one that isn't. A result that stays
// float32, such as the loss, would lose digits for nothing.
const FloatVariable* PrecisionChoice::Float32OutputOf(const FloatOp& op) const {
  for (const FloatArgument& output : op.outputs) {
    const FloatVariable& variable = variables_[output.variable];
    if (FollowsHalf(*output.slot) && !variable.is_half) return &variable;
  }
  return nullptr;
}

// Whether all that becomes of an op's results ends in ops with kLow, which would round it.
bool PrecisionChoice::IsRounded(const FloatOp& op) const {
  return !op.outputs.empty() && std::ranges::all_of(op.outputs, [&](const FloatArgument& output) {
    return !FollowsHalf(*output.slot) || variables_[output.variable].is_rounded;
  });
}

// Sets FloatVariable::is_rounded, for the modes as they are.
void PrecisionChoice::FindRounded() {
  for (FloatVariable& variable : variables_) variable.is_rounded = false;
  const auto rounds = [&](const FloatVariable& variable, size_t reader) {
    const FloatOp& op = ops_[reader];
    const bool reads_half = std::ranges::all_of(op.inputs, [&](const FloatArgument& input) {
      return &variables_[input.variable] != &variable || IsHalfIn(op, input);
    });
    return reads_half && (PrecisionOf(op) == Precision::kLow || IsRounded(op));
  };
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    // Readers mostly come later.
    for (size_t i = variables_.size(); i-- > 0;) {
      FloatVariable& variable = variables_[i];
      if (variable.is_rounded || !variable.is_half || variable.readers.empty()) continue;
      variable.is_rounded = std::ranges::all_of(
          variable.readers, [&](size_t reader) { return rounds(variable, reader); });
      has_changed = has_changed || variable.is_rounded;
    }
  }
}

bool PrecisionChoice::IsReadInHalf(const FloatVariable& variable) const {
  return std::ranges::all_of(variable.readers, [&](size_t reader) {
    const FloatOp& op = ops_[reader];
    return std::ranges::all_of(op.inputs, [&](const FloatArgument& input) {
      const bool is_this = &variables_[input.variable] == &variable;
      const bool measures = input.slot != nullptr && input.slot->shape_only;
      return !is_this || measures || IsHalfIn(op, input);
    });
  });
}

bool PrecisionChoice::MayStayHalf(const FloatVariable& variable) const {
  if (variable.var->is_parameter) return IsReadInHalf(variable);
  const bool is_read_as_it_is =
      variable.var->kind == VarKind::kLoDTensorArray || variable.var->persistable;
  if (is_read_as_it_is && !IsReadInHalf(variable)) return false;
  bool is_made = variable.is_set_by_loop;
  for (const size_t writer : variable.writers) {
    const FloatOp& op = ops_[writer];
    if (MakesConstants(op)) continue;
    is_made = true;
    for (const FloatArgument& output : op.outputs) {
      const bool is_this = &variables_[output.variable] == &variable;
      if (is_this && !IsHalfIn(op, output)) return false;
    }
  }
  return is_made;
}

}  // namespace skiff
