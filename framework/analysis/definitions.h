// Use-def and liveness of one block of a program, by definition.
//
// Programs are not SSA: a definition is the value of a variable from one write to the next. A write
// that may keep something of the old value (by a sub-block that may run zero times, or to an array)
// makes no new definition. Such a write updates the existing definition, which lives on.
//
//   0: x = fill()              x, made by 0, read by 1, 2 and 3, updated by 1: lives from 0 to 3
//   1: while (…) { x = f(x) }
//   2: y = g(x)                y, made by 2
//   3: x = h(x)                a new definition of x, made by 3
//
// The analysis treats each block as the body of a loop. The block's own variables begin and end
// with each run of it; one run may leave a value in a variable of an ancestor for the next run.
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
  // Variables that a run sets before the block starts, besides those of `feed` ops.
  std::vector<std::string> feeds;
  // Variables that a run reads after the block has ended.
  std::vector<std::string> fetches;
};

// Where the initial value of a definition comes from.
enum class Origin {
  kOp,            // an op of the block
  kFeed,          // a feed, which no op may write
  kPersistable,   // the scope
  kForwardBlock,  // the run of the block's own forward block, which nothing else sees
  kCaptured,      // another block that this block sees
  kUnknown,       // a feed that isn't listed, or nowhere
};

// Why a definition outlives the block.
struct Outlives {
  bool fetched = false;
  bool persistable = false;
  bool captured = false;  // the next iteration, or ops of an ancestor, may read it
  // A gradient block of this block, or of the forward block, reads the data.
  bool read_by_gradient = false;

  bool any() const { return fetched || persistable || captured || read_by_gradient; }
};

struct Definition {
  const Var* var = nullptr;
  const Block* block = nullptr;  // the block that declares the variable
  Origin origin = Origin::kOp;
  // The op that makes it; -1: it exists when the block starts.
  int64_t first = -1;
  // The last op that makes, reads (its data) or updates the definition; the number of ops if it
  // outlives the block; -1 if it exists at the start and nothing uses it.
  int64_t last = -1;
  // Ops that read its data, in order. Ops that read only its shape may come later.
  std::vector<size_t> readers;
  // Ops that may change it, wholly or partly, in order. If `first` is among them, the op may have
  // left the variable without a value.
  std::vector<size_t> updates;
  Outlives outlives;
};

class BlockDefinitions {
 public:
  // `all` must be in order of `first`.
  explicit BlockDefinitions(std::vector<Definition> all);

  // Returns all definitions in order of `first`, then in the order in which feeds, ops and fetches
  // name the variables.
  const std::vector<Definition>& all() const { return all_; }

  // Returns the definition that the variable holds when the op at `position` starts; for position =
  // number of ops, when the block ends. Returns nullptr if it holds nothing, or nothing that anyone
  // uses.
  const Definition* Before(size_t position, const Var* var) const;

  // Returns the first op from `position` on that updates the definition, which must be one of
  // all(), or makes the next definition of its variable.
  std::optional<size_t> NextWrite(const Definition& definition, size_t position) const;

 private:
  std::vector<Definition> all_;
  std::unordered_map<const Var*, std::vector<size_t>> of_var_;  // in all_, in order
};

// Returns the definitions of all variables that are fed, fetched, or used by the block's ops
// (UsesOf, which includes uses by their sub-blocks). They are deterministic, and the same for
// clones.
//
// Throws Error (kNotFound) for a feed or a fetch that the block doesn't see, and what UsesOf throws
// for the ops of the block and of its gradient blocks.
BlockDefinitions FindDefinitions(const OpRegistry& registry, const Block& block,
                                 const DefinitionOptions& options = {});

}  // namespace skiff
