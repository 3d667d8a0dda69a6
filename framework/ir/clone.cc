// Program::Clone, CloneForTest and Prune: copies of a program, whole or in part.
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/program.h"

namespace skiff {
namespace {

using OpFilter = std::function<bool(const Op&)>;
using NameSet = std::unordered_set<std::string>;

bool KeepAll(const Op&) { return true; }

// Block attributes may come from a file. The walks below use them as indices.
void CheckSubBlocks(const Program& program) {
  const auto count = static_cast<int64_t>(program.block_count());
  for (int32_t b = 0; b < count; ++b) {
    const auto& ops = program.block(b)->ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      for (int32_t index : ops[i]->SubBlocks()) {
        SKIFF_ENFORCE(index >= 0 && index < count, kOutOfRange, "block ", b, ", op #", i, " \"",
                      ops[i]->type, "\": an attribute names block ", index,
                      ", expected one in [0, ", count, ")");
      }
    }
  }
}

// Returns which blocks ops refer to, directly or through other blocks, starting at the root and
// following only ops that the filter keeps.
std::vector<bool> ReferencedBlocks(const Program& program, const OpFilter& keep_op) {
  std::vector<bool> referenced(program.block_count(), false);
  std::vector<int32_t> pending{0};
  referenced[0] = true;
  while (!pending.empty()) {
    const Block* block = program.block(pending.back());
    pending.pop_back();
    for (const auto& op : block->ops()) {
      if (!keep_op(*op)) continue;
      for (int32_t index : op->SubBlocks()) {
        if (referenced[static_cast<size_t>(index)]) continue;
        referenced[static_cast<size_t>(index)] = true;
        pending.push_back(index);
      }
    }
  }
  return referenced;
}

// Blocks that aren't selected are copied empty, so that the others keep the indices that attributes
// name.
void CopyBlocks(const Program& from, const std::vector<bool>& selected, const OpFilter& keep_op,
                Program* to) {
  for (size_t i = 0; i < from.block_count(); ++i) {
    const Block* source = from.block(static_cast<int32_t>(i));
    Block* copy = i == 0 ? to->root() : to->AppendBlock(source->parent_index());
    copy->forward_block_index = source->forward_block_index;
    if (!selected[i]) continue;
    for (const auto& var : source->vars()) copy->CreateVar(*var);
    for (const auto& op : source->ops()) {
      if (keep_op(*op)) copy->AppendOpWithId(*op);
    }
  }
}

void AddNamedByAttributes(const Op& op, std::vector<std::string>* names) {
  for (const auto& [name, attribute] : op.attrs) {
    if (const auto* one = std::get_if<VarName>(&attribute)) names->push_back(one->value);
    const auto* several = std::get_if<std::vector<VarName>>(&attribute);
    if (several == nullptr) continue;
    for (const VarName& var : *several) names->push_back(var.value);
  }
}

std::vector<std::string> ReadNames(const Op& op) {
  std::vector<std::string> names = op.InputNames();
  AddNamedByAttributes(op, &names);
  return names;
}

std::unordered_set<const Var*> UsedVars(const Program& program) {
  std::unordered_set<const Var*> used;
  const auto use = [&used](const Block& block, const std::vector<std::string>& names) {
    for (const std::string& name : names) used.insert(block.FindVar(name));
  };
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Block* block = program.block(static_cast<int32_t>(i));
    for (const auto& op : block->ops()) {
      use(*block, ReadNames(*op));
      use(*block, op->OutputNames());
    }
  }
  return used;
}

void RemoveUnusedVars(Block* block, const std::unordered_set<const Var*>& used) {
  std::vector<std::string> unused;
  for (const auto& var : block->vars()) {
    if (!used.contains(var.get())) unused.push_back(var->name);
  }
  block->RemoveVars(unused);
}

// The variables of the root block that an op reads and writes, itself or in its sub-blocks.
struct RootAccess {
  NameSet reads;
  NameSet writes;
};

bool IsOfRoot(const Block& block, const std::string& name) {
  const Block* root = block.program()->root();
  const Var* var = block.FindVar(name);
  return var == nullptr || var == root->FindLocalVar(name);
}

void AddAccess(const Block& block, const Op& op, RootAccess* access) {
  for (std::string& name : ReadNames(op)) {
    if (IsOfRoot(block, name)) access->reads.insert(std::move(name));
  }
  for (std::string& name : op.OutputNames()) {
    if (IsOfRoot(block, name)) access->writes.insert(std::move(name));
  }
}

// What sub-blocks read and write counts for the op that runs them, to any depth; each block is
// visited once, also in programs whose blocks refer to each other in circles.
RootAccess AccessOf(const Program& program, const Op& root_op) {
  RootAccess access;
  AddAccess(*program.root(), root_op, &access);
  std::vector<int32_t> pending = root_op.SubBlocks();
  std::unordered_set<int32_t> visited{0};
  while (!pending.empty()) {
    const int32_t index = pending.back();
    pending.pop_back();
    if (!visited.insert(index).second) continue;
    const Block* block = program.block(index);
    for (const auto& op : block->ops()) {
      AddAccess(*block, *op, &access);
      const std::vector<int32_t> inner = op->SubBlocks();
      pending.insert(pending.end(), inner.begin(), inner.end());
    }
  }
  return access;
}

// Nothing needs to compute a feed. But an op that also reads the feed changes its value, so it
// stays.
bool IsNeeded(const RootAccess& access, const NameSet& needed, const NameSet& feeds) {
  return std::any_of(access.writes.begin(), access.writes.end(), [&](const std::string& name) {
    return needed.contains(name) && (!feeds.contains(name) || access.reads.contains(name));
  });
}

void CheckTargets(const Program& program, const NameSet& feeds,
                  const std::vector<std::string>& targets) {
  NameSet written;
  for (const auto& op : program.root()->ops()) written.merge(AccessOf(program, *op).writes);
  for (const std::string& target : targets) {
    const Var* var = program.root()->FindLocalVar(target);
    SKIFF_ENFORCE(var != nullptr, kNotFound, "prune: target \"", target,
                  "\" is no variable of the root block");
    SKIFF_ENFORCE(var->persistable || feeds.contains(target) || written.contains(target),
                  kInvalidArgument, "prune: target \"", target,
                  "\" is written by no op, and is neither persistable nor a feed");
  }
}

std::unordered_set<const Op*> OpsNeededFor(const Program& program, const NameSet& feeds,
                                           const std::vector<std::string>& targets) {
  std::unordered_set<const Op*> kept;
  NameSet needed(targets.begin(), targets.end());
  const auto& ops = program.root()->ops();
  // Backward, so that all readers of a variable have been decided on before its writers.
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    RootAccess access = AccessOf(program, **op);
    if (!IsNeeded(access, needed, feeds)) continue;
    kept.insert(op->get());
    // Names that the op writes stay needed: the op may write only a part of a variable, so earlier
    // writes may matter, too.
    needed.merge(access.reads);
  }
  return kept;
}

bool IsForTraining(const Op& op) {
  return (op.role() & (kRoleBackward | kRoleOptimize | kRoleLRSched)) != 0;
}

// Returns the ops of the root block that are for training, and those that need what only these
// compute in a run, such as a gradient.
std::unordered_set<const Op*> OpsForTraining(const Program& program) {
  std::unordered_set<const Op*> found;
  NameSet kept;
  NameSet gone;
  for (const auto& op : program.root()->ops()) {
    const RootAccess access = AccessOf(program, *op);
    const bool is_dropped =
        IsForTraining(*op) || std::any_of(access.reads.begin(), access.reads.end(),
                                          [&](const std::string& x) { return gone.contains(x); });
    if (is_dropped) found.insert(op.get());
    for (const std::string& name : access.writes) {
      const Var* var = program.root()->FindLocalVar(name);
      const bool outlives_the_run = var != nullptr && var->persistable;
      if (is_dropped && !outlives_the_run && !kept.contains(name)) gone.insert(name);
      if (is_dropped) continue;
      kept.insert(name);
      gone.erase(name);
    }
  }
  return found;
}

void SetIsTest(const Program& program, const std::vector<std::string>& ops_with_is_test) {
  const NameSet types(ops_with_is_test.begin(), ops_with_is_test.end());
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& op : program.block(static_cast<int32_t>(i))->ops()) {
      if (op->HasAttr("is_test") || types.contains(op->type)) op->SetAttr("is_test", true);
    }
  }
}

}  // namespace

void Program::CopySettingsTo(Program* copy) const {
  copy->version = version;
  copy->op_versions = op_versions;
  copy->seed = seed;
  // Ids must stay unique even among ops that this copy has dropped: random ops draw by them.
  copy->next_op_id_ = next_op_id_;
  copy->name_counters_ = name_counters_;
}

std::unique_ptr<Program> Program::Clone() const {
  auto copy = std::make_unique<Program>();
  CopyBlocks(*this, std::vector<bool>(block_count(), true), KeepAll, copy.get());
  CopySettingsTo(copy.get());
  return copy;
}

std::unique_ptr<Program> Program::CloneForTest(
    const std::vector<std::string>& ops_with_is_test) const {
  CheckSubBlocks(*this);
  const std::unordered_set<const Op*> dropped = OpsForTraining(*this);
  const OpFilter keep_op = [&](const Op& op) {
    return !IsForTraining(op) && !dropped.contains(&op);
  };
  auto copy = std::make_unique<Program>();
  CopyBlocks(*this, ReferencedBlocks(*this, keep_op), keep_op, copy.get());
  CopySettingsTo(copy.get());
  SetIsTest(*copy, ops_with_is_test);
  const std::unordered_set<const Var*> used = UsedVars(*copy);
  for (const auto& block : copy->blocks_) RemoveUnusedVars(block.get(), used);
  return copy;
}

std::unique_ptr<Program> Program::Prune(const std::vector<std::string>& feeds,
                                        const std::vector<std::string>& targets) const {
  CheckSubBlocks(*this);
  const NameSet feed_set(feeds.begin(), feeds.end());
  CheckTargets(*this, feed_set, targets);
  const std::unordered_set<const Op*> needed = OpsNeededFor(*this, feed_set, targets);
  std::unordered_set<const Op*> dropped;
  for (const auto& op : root()->ops()) {
    if (!needed.contains(op.get())) dropped.insert(op.get());
  }
  const OpFilter keep_op = [&dropped](const Op& op) { return !dropped.contains(&op); };

  auto copy = std::make_unique<Program>();
  CopyBlocks(*this, ReferencedBlocks(*this, keep_op), keep_op, copy.get());
  CopySettingsTo(copy.get());
  std::unordered_set<const Var*> used = UsedVars(*copy);
  // Feeds and targets stay even if no op that is kept uses them.
  for (const std::string& name : feeds) used.insert(copy->root()->FindLocalVar(name));
  for (const std::string& name : targets) used.insert(copy->root()->FindLocalVar(name));
  RemoveUnusedVars(copy->root(), used);
  return copy;
}

}  // namespace skiff
