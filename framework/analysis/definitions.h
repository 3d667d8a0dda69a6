// Use-def and liveness of one block of a program, by definition.
//
// A program is not SSA: a definition is what a variable holds from one write to the next. A write
// that may leave something of what was there (a sub-block that may be run zero times, a write to an
// array) makes none: it updates the one that is there, which lives on.
//
//   0: x = fill()              x, made by 0, read by 1, 2 and 3, updated by 1: lives from 0 to 3
//   1: while (…) { x = f(x) }
//   2: y = g(x)                y, made by 2
//   3: x = h(x)                x once more, made by 3
//
// Each block counts as the body of a loop. Its own variables begin and end with each run of it;
// what it leaves in one of an ancestor, the next run may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

struct DefinitionOptions {
  // Names of variables that a run sets before the block starts, besides those of `feed` ops.
  std::vector<std::string> feeds;
  // Names of those that it reads when the block has ended.
  std::vector<std::string> fetches;
};

// Where the value comes from that a definition starts with.
enum class Origin {
  kOp,            // an op of the block
  kFeed,          // a feed, which nobody may write
  kPersistable,   // the scope
  kForwardBlock,  // the run of the block's own forward block, which nobody else sees then
  kCaptured,      // another block that this one sees
  kUnknown,       // a feed that isn't listed, or nowhere
};

// Why a definition lives on when the block has ended.
struct Outlives {
  bool fetched = false;
  bool persistable = false;
  bool captured = false;  // the next iteration, or ops of an ancestor, may read it
  // A gradient block of this block reads its data, or another gradient block of this one's forward
  // block.
  bool read_by_gradient = false;

  bool any() const { return fetched || persistable || captured || read_by_gradient; }
};

struct Definition {
  const Var* var = nullptr;
  const Block* block = nullptr;  // that declares the variable
  Origin origin = Origin::kOp;
  // The op that makes it; -1: it is there when the block starts.
  int64_t first = -1;
  // The last op that makes it, reads its data or updates it; the number of ops if it outlives the
  // block; -1 if it is there and nobody cares.
  int64_t last = -1;
  // Ops that read its data, in order. An op that only reads its shape may come later.
  std::vector<size_t> readers;
  // Ops that may change it, in all or in part, in order. If `first` is one of them, there may have
  // been nothing to change, and the value may be none.
  std::vector<size_t> updates;
  Outlives outlives;
};

class BlockDefinitions {
 public:
  // `all` in order of `first`.
  explicit BlockDefinitions(std::vector<Definition> all);

  // In order of `first`, then in that in which feeds, ops and fetches name the variables.
  const std::vector<Definition>& all() const { return all_; }

  // What the variable holds when the op at the position starts; with the number of ops, when the
  // block ends. nullptr: nothing, or nothing that anybody asks for.
  const Definition* Before(size_t position, const Var* var) const;

  // The first op from `position` on that updates the definition, which is one of these, or makes
  // the next one of its variable.
  std::optional<size_t> NextWrite(const Definition& definition, size_t position) const;

 private:
  std::vector<Definition> all_;
  std::unordered_map<const Var*, std::vector<size_t>> of_var_;  // in all_, in order
};

// The definitions of all variables that the block's ops use (see UsesOf: what their sub-blocks use
// counts, too), and that are fed or fetched. They are the same from run to run and for clones.
//
// Error (kNotFound) for a feed or a fetch that the block doesn't see, and as of UsesOf for the ops
// of the block and of its gradient blocks.
BlockDefinitions FindDefinitions(const OpRegistry& registry, const Block& block,
                                 const DefinitionOptions& options = {});

}  // namespace skiff
