// A program: blocks of op descriptors over variable descriptors, as in Paddle Fluid.
//
// A Program owns its Blocks; a Block owns its Vars and Ops. All are plain data with stable
// addresses. Programs are not SSA: several ops may write a variable, and an op may write a variable
// that it reads. Not thread-safe, but many threads may read a const Program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/ir/attribute.h"

namespace skiff {

// The enumerators are those of Fluid's VarType.Type.
enum class VarKind : int32_t {
  kLoDTensor = 7,
  kSelectedRows = 8,
  kFeedMinibatch = 9,
  kFetchList = 10,
  kStepScopes = 11,
  kLoDRankTable = 12,
  kLoDTensorArray = 13,
  kPlaceList = 14,
  kReader = 15,
  kRaw = 17,
};

// Returns "lod_tensor", "selected_rows", ….
std::string_view VarKindName(VarKind kind);
// Returns the kind with this name. Throws Error if the name is unknown.
VarKind VarKindFromName(std::string_view name);
// Returns whether a number read from a file is a VarKind.
bool IsVarKind(int32_t value);

struct Var {
  std::string name;
  VarKind kind = VarKind::kLoDTensor;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> dims;  // -1: unknown until a run
  int32_t lod_level = 0;
  bool persistable = false;
  bool is_parameter = false;
  bool stop_gradient = false;
  bool need_check_feed = false;
  AttributeMap attrs;

  // The builder hands these settings of a parameter to the optimizer. Files don't hold them.
  float learning_rate_factor = 1.0f;
  bool trainable = true;

  // Compares all fields; floating-point values bit by bit.
  friend bool operator==(const Var& a, const Var& b);
};

// The builder call that made an op. Comparing ops ignores it. The text format shows it in a
// comment, which parsing skips.
struct CreationSite {
  std::string file;
  int32_t line = 0;
};

// A slot (a named argument list of an op) and the variables in it. An op keeps its slots in the
// order in which they were set.
struct SlotArguments {
  std::string slot;
  std::vector<std::string> arguments;
  friend bool operator==(const SlotArguments&, const SlotArguments&) = default;
};
using Slots = std::vector<SlotArguments>;

class Op {
 public:
  Op();
  explicit Op(std::string type);
  // Out of line, as those of Attribute: compiled once, not in every file that has an op.
  Op(const Op& other);
  Op(Op&& other) noexcept;
  Op& operator=(const Op& other);
  Op& operator=(Op&& other) noexcept;
  ~Op();

  std::string type;
  Slots inputs;
  Slots outputs;
  AttributeMap attrs;
  bool is_target = false;
  CreationSite site;
  // Unique in the program. Clones keep it, since the id selects the numbers that a random op draws.
  int64_t id = -1;

  // Returns the variables in a slot, none if the op has no such slot.
  const std::vector<std::string>& Input(std::string_view slot) const;
  const std::vector<std::string>& Output(std::string_view slot) const;
  // Sets or replaces the variables in a slot.
  Op& SetInput(std::string_view slot, std::vector<std::string> arguments);
  Op& SetOutput(std::string_view slot, std::vector<std::string> arguments);
  Op& SetAttr(std::string_view name, Attribute value);

  bool HasAttr(std::string_view name) const;
  // Returns the attribute's value, or `fallback` if it isn't set. Throws Error if the attribute has
  // another type.
  template <typename T>
  T Attr(std::string_view name, T fallback) const;
  // Returns the attribute's value. Throws Error if it isn't set or has another type.
  template <typename T>
  const T& Attr(std::string_view name) const;

  // Returns all arguments but @EMPTY@, in slot order, with repetitions.
  std::vector<std::string> InputNames() const;
  std::vector<std::string> OutputNames() const;

  int32_t role() const { return Attr<int32_t>("op_role", 0); }
  // Returns the indices of the blocks that the op's attributes name.
  std::vector<int32_t> SubBlocks() const;

  // Compares type, slots, attributes (floating-point values bit by bit) and is_target.
  friend bool operator==(const Op& a, const Op& b);

 private:
  const Attribute* FindAttr(std::string_view name) const;
  [[noreturn]] void ThrowAttrType(std::string_view name, AttrType expected) const;
  [[noreturn]] void ThrowNoAttr(std::string_view name) const;
};

class Program;

class Block {
 public:
  Block(Program* program, int32_t index, int32_t parent);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Program* program() const { return program_; }
  int32_t index() const { return index_; }
  int32_t parent_index() const { return parent_; }
  // Returns nullptr for a block without a parent.
  Block* parent() const;
  int32_t forward_block_index = -1;

  const std::vector<std::unique_ptr<Op>>& ops() const { return ops_; }
  // Appends an op, or inserts it before `position`. Assigns a new id unless the op has one that no
  // other op of the program has. Throws Error if `position` is greater than the number of ops.
  Op* AppendOp(Op op);
  Op* InsertOp(size_t position, Op op);
  // Removes ops [begin, end). Throws Error unless begin <= end <= number of ops.
  void RemoveOps(size_t begin, size_t end);
  // Reorders the ops: op i becomes what op order[i] was. Ops not in `order` are removed. Throws
  // Error if an index is out of range or occurs twice.
  void ReorderOps(const std::vector<size_t>& order);

  // In order of creation.
  const std::vector<std::unique_ptr<Var>>& vars() const { return vars_; }
  // Throws Error if the name is empty or this block already has it.
  Var* CreateVar(Var var);
  // Searches this block only. Returns nullptr if there is no such variable.
  Var* FindLocalVar(std::string_view name) const;
  // Searches this block, then its ancestors; of a gradient block also its forward block, which
  // keeps what it has left. Returns nullptr if there is no such variable.
  Var* FindVar(std::string_view name) const;
  // Like FindVar, but throws Error if there is no such variable.
  Var* GetVar(std::string_view name) const;
  // Does nothing if this block has no such variable.
  void RemoveVar(std::string_view name);
  // Removes all of them in one pass over the block's variables.
  void RemoveVars(const std::vector<std::string>& names);

 private:
  Program* program_;
  int32_t index_;
  int32_t parent_;
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<std::unique_ptr<Var>> vars_;
  std::unordered_map<std::string, Var*> vars_by_name_;
};

class Program {
 public:
  Program();  // Creates an empty root block.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program(Program&&) = delete;

  size_t block_count() const { return blocks_.size(); }
  // Throws Error if there is no such block.
  Block* block(int32_t index) const;
  Block* root() const { return blocks_.front().get(); }
  // Appends an empty block. `parent` must exist, or be -1 for a block without a parent.
  Block* AppendBlock(int32_t parent);

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
  // Returns a deep copy for evaluation. It drops the ops whose role is backward, optimize or
  // learning-rate schedule, and the variables that nothing uses any more. It sets `is_test` to true
  // on every op that has the attribute or whose type is in `ops_with_is_test` (for ops that omit
  // the default). Blocks that no op refers to any more become empty but keep their index.
  std::unique_ptr<Program> CloneForTest(
      const std::vector<std::string>& ops_with_is_test = {}) const;
  // Returns a deep copy that keeps only those ops of the root block that the targets need, given
  // the feeds. Sub-blocks are kept whole. Throws Error if a target is not a variable, or if no op
  // writes it and it is neither persistable nor a feed.
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

  std::vector<std::unique_ptr<Block>> blocks_;
  int64_t next_op_id_ = 0;
  std::unordered_map<std::string, int64_t> name_counters_;
};

template <typename T>
const T& Op::Attr(std::string_view name) const {
  const Attribute* attribute = FindAttr(name);
  if (attribute == nullptr) ThrowNoAttr(name);
  const T* value = std::get_if<T>(attribute);
  if (value == nullptr) ThrowAttrType(name, AttrTypeOf<T>());
  return *value;
}

template <typename T>
T Op::Attr(std::string_view name, T fallback) const {
  return FindAttr(name) == nullptr ? std::move(fallback) : Attr<T>(name);
}

}  // namespace skiff
