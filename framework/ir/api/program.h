// A program: blocks of op descriptors over variable descriptors, as in Paddle Fluid.
//
// Programs are not SSA: several ops may write a variable, and an op may write a variable that it
// reads. Not thread-safe, but many threads may read a const Program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace skiff {

// The parts of a program. skiff/pass.h has their definitions.
namespace ir {
class Block;
class Op;
struct Var;
}  // namespace ir

class Program {
 public:
  Program();  // Creates an empty root block.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  // The blocks, variables and ops of `other` keep their addresses, so pointers to them, and the
  // Variables of layers, stay valid. `other` becomes an empty program, as a new one. What points to
  // a Program, such as a ProgramGuard, doesn't follow the move. An assignment destroys the blocks
  // that the program had.
  Program(Program&& other) noexcept;
  Program& operator=(Program&& other) noexcept;
  ~Program();

  size_t block_count() const;
  // Throws Error if there is no such block.
  ir::Block* block(int32_t index) const;
  ir::Block* root() const;
  // Appends an empty block. `parent` must exist, or be -1 for a block without a parent.
  ir::Block* AppendBlock(int32_t parent);

  // The version of Fluid that wrote the file, and its op versions. Loading and saving keep both.
  int64_t version = 0;
  std::vector<std::pair<std::string, int32_t>> op_versions;
  // The seed of random ops whose own `seed` attribute is 0. 0: not set. The text format saves it;
  // the file format has no field for it.
  uint64_t seed = 0;

  // Returns a name that no variable of the program has: `prefix`, `_` and a number. Each call
  // returns a different name.
  std::string UniqueName(std::string_view prefix);

  // Returns a deep copy. Ops keep their ids.
  std::unique_ptr<Program> Clone() const;
  // Returns a deep copy for evaluation. The copy lacks the ops whose role is backward, optimize or
  // learning-rate schedule, the ops of the root block with an input that only dropped ops compute
  // (such as a gradient), and the variables that no op uses any more. `is_test` is true on every op
  // of the copy that has the attribute or whose type is in `ops_with_is_test` (for ops that omit
  // the default). Blocks that no op refers to any more become empty but keep their index.
  std::unique_ptr<Program> CloneForTest(
      const std::vector<std::string>& ops_with_is_test = {}) const;
  // Returns a deep copy. Its root block keeps only the ops that the targets need, given the feeds.
  // Sub-blocks are kept whole. Throws Error if a target is no variable, or if no op writes the
  // target and it is neither persistable nor a feed.
  std::unique_ptr<Program> Prune(const std::vector<std::string>& feeds,
                                 const std::vector<std::string>& targets) const;

  // Returns whether any op of any block has this id.
  bool HasOpId(int64_t id) const;
  // Returns an id that no op has, and never returns it again.
  int64_t NextOpId() { return next_op_id_++; }
  // Keeps NextOpId from returning ids below `id`.
  void ReserveOpIds(int64_t id) { next_op_id_ = next_op_id_ < id ? id : next_op_id_; }

  // Compares blocks, variables and ops, including their order, but not ids and creation sites.
  friend bool operator==(const Program& a, const Program& b);

 private:
  // Copies everything but the blocks.
  void CopySettingsTo(Program* copy) const;

  std::vector<std::unique_ptr<ir::Block>> blocks_;
  int64_t next_op_id_ = 0;
  std::unordered_map<std::string, int64_t> name_counters_;
};

}  // namespace skiff
