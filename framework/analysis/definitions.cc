// One walk over the block, in program order. It keeps the latest definition of each variable
// (current_), notes reads in it, and begins another definition at each write that replaces the
// whole value. A sub-block counts as one big op: UsesOf says what it reads and writes.
//
// Definitions that exist at the start are made when they are first used, hence the sort at the end.
#include "framework/analysis/definitions.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "framework/analysis/nested_blocks.h"
#include "framework/analysis/op_uses.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

using VarSet = std::unordered_set<const Var*>;

// A gradient block may have a gradient block itself. The count ends a chain that leads back to its
// start.
bool IsGradientBlockOf(const Block& block, const Block& forward) {
  const Block* next = ForwardBlock(block);
  for (size_t i = 0; next != nullptr && i < block.program()->block_count(); ++i) {
    if (next == &forward) return true;
    next = ForwardBlock(*next);
  }
  return false;
}

// Returns whether `other` may run after a run of the block and read what that run left: whether it
// is the block's gradient block, or one that shares its forward block.
bool RunsAfter(const Block& other, const Block& block) {
  if (&other == &block) return false;
  const Block* forward = ForwardBlock(block);
  return IsGradientBlockOf(other, block) ||
         (forward != nullptr && IsGradientBlockOf(other, *forward));
}

// Returns the variables whose data such blocks read.
VarSet ReadAfter(const OpRegistry& registry, const Block& block) {
  VarSet read;
  for (size_t b = 0; b < block.program()->block_count(); ++b) {
    const Block& other = *block.program()->block(static_cast<int32_t>(b));
    if (!RunsAfter(other, block)) continue;
    for (size_t i = 0; i < other.ops().size(); ++i) {
      for (const VarUse& use : UsesOf(registry, other, i).vars) {
        if (use.reads_data) read.insert(use.var);
      }
    }
  }
  return read;
}

class DefinitionWalk {
 public:
  DefinitionWalk(const OpRegistry& registry, const Block& block)
      : registry_(registry), block_(block) {}

  std::vector<Definition> Run(const DefinitionOptions& options) {
    // Feeds first and fetches last: they are set before the block runs and read after it.
    for (const std::string& name : options.feeds) AddFeed(Find("feed", name));
    for (size_t i = 0; i < block_.ops().size(); ++i) AddOp(i);
    for (const std::string& name : options.fetches) {
      Current(Find("fetch", name)).outlives.fetched = true;
    }
    EndBlock();
    std::ranges::stable_sort(definitions_, {}, &Definition::first);
    return std::move(definitions_);
  }

 private:
  VisibleVar Find(const char* what, const std::string& name) const {
    const VisibleVar found = VisibleVars(block_).Find(name);
    SKIFF_ENFORCE(found.var != nullptr, kNotFound, what, " \"", name, "\": block ", block_.index(),
                  " has no such variable");
    return found;
  }

  void AddFeed(const VisibleVar& variable) {
    fed_.insert(variable.var);
    Current(variable);
  }

  void AddOp(size_t position) {
    const bool is_feed = block_.ops()[position]->type == "feed";
    for (const VarUse& use : UsesOf(registry_, block_, position).vars) {
      const VisibleVar variable{use.var, use.block};
      // A reader of the shape alone needs a definition, too, but doesn't keep its data alive.
      if (use.reads_data || use.reads_shape) Current(variable);
      if (use.reads_data) Current(variable).readers.push_back(position);
      if (use.writes && is_feed) AddFeed(variable);
      if (use.writes && !is_feed) AddWrite(variable, use.replaces, position);
    }
  }

  void AddWrite(const VisibleVar& variable, bool replaces, size_t position) {
    const bool is_there = current_.contains(variable.var) || OriginOf(variable) != Origin::kUnknown;
    // A partial write to a variable that holds nothing yet makes its first definition.
    if (replaces || !is_there) Make(variable, Origin::kOp, static_cast<int64_t>(position));
    if (!replaces) Current(variable).updates.push_back(position);
  }

  // Returns the latest definition of the variable. If there is none yet, its value came from
  // outside.
  Definition& Current(const VisibleVar& variable) {
    const auto found = current_.find(variable.var);
    return found == current_.end() ? Make(variable, OriginOf(variable), -1)
                                   : definitions_[found->second];
  }

  Definition& Make(const VisibleVar& variable, Origin origin, int64_t first) {
    current_[variable.var] = definitions_.size();
    definitions_.push_back(
        {.var = variable.var, .block = variable.block, .origin = origin, .first = first});
    return definitions_.back();
  }

  // The origin of a definition that exists when the block starts.
  Origin OriginOf(const VisibleVar& variable) const {
    if (variable.var->persistable) return Origin::kPersistable;
    if (fed_.contains(variable.var)) return Origin::kFeed;
    if (variable.block == &block_) return Origin::kUnknown;
    return variable.block == ForwardBlock(block_) ? Origin::kForwardBlock : Origin::kCaptured;
  }

  void EndBlock() {
    const VarSet read_by_gradient = ReadAfter(registry_, block_);
    for (const auto& [var, index] : current_) {
      Definition& definition = definitions_[index];
      Outlives& outlives = definition.outlives;
      outlives.persistable = var->persistable;
      // Persistables live in the scope, and only gradient blocks see variables of the forward
      // block.
      outlives.captured = !var->persistable && definition.block != &block_ &&
                          definition.block != ForwardBlock(block_);
      outlives.read_by_gradient = read_by_gradient.contains(var);
    }
    for (Definition& definition : definitions_) definition.last = LastUse(definition);
  }

  int64_t LastUse(const Definition& definition) const {
    if (definition.outlives.any()) return static_cast<int64_t>(block_.ops().size());
    int64_t last = definition.first;
    for (const std::vector<size_t>* uses : {&definition.readers, &definition.updates}) {
      if (!uses->empty()) last = std::max(last, static_cast<int64_t>(uses->back()));
    }
    return last;
  }

  const OpRegistry& registry_;
  const Block& block_;
  VarSet fed_;
  std::vector<Definition> definitions_;
  std::unordered_map<const Var*, size_t> current_;  // the latest of each variable
};

}  // namespace

BlockDefinitions::BlockDefinitions(std::vector<Definition> all) : all_(std::move(all)) {
  for (size_t i = 0; i < all_.size(); ++i) of_var_[all_[i].var].push_back(i);
}

const Definition* BlockDefinitions::Before(size_t position, const Var* var) const {
  const auto found = of_var_.find(var);
  if (found == of_var_.end()) return nullptr;
  // An op sees what was made before it starts, not what it makes itself.
  const auto after = std::ranges::lower_bound(found->second, static_cast<int64_t>(position), {},
                                              [this](size_t index) { return all_[index].first; });
  return after == found->second.begin() ? nullptr : &all_[*(after - 1)];
}

std::optional<size_t> BlockDefinitions::NextWrite(const Definition& definition,
                                                  size_t position) const {
  // Updates come before the next definition, since they belong to this one.
  const auto update = std::ranges::lower_bound(definition.updates, position);
  if (update != definition.updates.end()) return *update;
  const std::vector<size_t>& of_var = of_var_.at(definition.var);
  // Definitions of a variable are in order of `first`, so the next one begins where this one ends.
  const auto next = std::ranges::upper_bound(of_var, definition.first, {},
                                             [this](size_t index) { return all_[index].first; });
  if (next == of_var.end()) return std::nullopt;
  return static_cast<size_t>(all_[*next].first);
}

BlockDefinitions FindDefinitions(const OpRegistry& registry, const Block& block,
                                 const DefinitionOptions& options) {
  return BlockDefinitions(DefinitionWalk(registry, block).Run(options));
}

}  // namespace skiff
