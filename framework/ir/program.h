// The program: blocks of op descriptors over variable descriptors, as in Paddle Fluid.
//
// A Program owns its Blocks, a Block its Vars and Ops; all are plain data with stable addresses.
// Programs are not SSA: a variable may be written more than once, and an op may write what it
// reads. Not thread-safe; a const Program may be read by many threads.
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

// Enumerators are Fluid's VarType.Type.
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

// "lod_tensor", "selected_rows", …
std::string_view VarKindName(VarKind kind);
// The inverse of VarKindName; Error if the name is unknown.
VarKind VarKindFromName(std::string_view name);
// Whether the value of a file's enumerator is one of ours.
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

  // Settings of a parameter that the builder hands to the optimizer; they aren't saved.
  float learning_rate_factor = 1.0f;
  bool trainable = true;

  // Equal fields; floating point compares bit by bit.
  friend bool operator==(const Var& a, const Var& b);
};

// The builder call that made an op. Not part of equality; the text form shows it in a comment,
// which parsing skips.
struct CreationSite {
  std::string file;
  int32_t line = 0;
};

// The arguments of one slot. Slots keep the order in which they were set.
struct SlotArguments {
  std::string slot;
  std::vector<std::string> arguments;
  friend bool operator==(const SlotArguments&, const SlotArguments&) = default;
};
using Slots = std::vector<SlotArguments>;

class Op {
 public:
  Op() = default;
  explicit Op(std::string type) : type(std::move(type)) {}

  std::string type;
  Slots inputs;
  Slots outputs;
  AttributeMap attrs;
  bool is_target = false;
  CreationSite site;
  // Unique in its program and kept by clones: random ops draw by it.
  int64_t id = -1;

  // The arguments of a slot; empty if the op has no such slot.
  const std::vector<std::string>& Input(std::string_view slot) const;
  const std::vector<std::string>& Output(std::string_view slot) const;
  // Sets (or replaces) the arguments of a slot.
  Op& SetInput(std::string_view slot, std::vector<std::string> arguments);
  Op& SetOutput(std::string_view slot, std::vector<std::string> arguments);
  Op& SetAttr(std::string_view name, Attribute value);

  bool HasAttr(std::string_view name) const;
  // The attribute's value, or `fallback` if it isn't set. Error if it is of another type.
  template <typename T>
  T Attr(std::string_view name, T fallback) const;
  // The attribute's value. Error if it isn't set or is of another type.
  template <typename T>
  const T& Attr(std::string_view name) const;

  // All arguments that name a variable (@EMPTY@ left out), in slot order, repetitions kept.
  std::vector<std::string> InputNames() const;
  std::vector<std::string> OutputNames() const;

  int32_t role() const { return Attr<int32_t>("op_role", 0); }
  // Indices of the blocks that its attributes name.
  std::vector<int32_t> SubBlocks() const;

  // Equal type, slots, attributes (floating point bit by bit) and target mark.
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
  // nullptr for the root.
  Block* parent() const;
  int32_t forward_block_index = -1;

  const std::vector<std::unique_ptr<Op>>& ops() const { return ops_; }
  // Appends (inserts before `position`). An op without an id, or with the id of an op that is in
  // the program, gets one of its own. Error for a position beyond the end.
  Op* AppendOp(Op op);
  Op* InsertOp(size_t position, Op op);
  // Removes the ops [begin, end). Error unless begin <= end <= number of ops.
  void RemoveOps(size_t begin, size_t end);
  // Puts the ops into another order: op i of the result was op order[i]. Ops not named are removed;
  // Error for an index out of range or named twice.
  void ReorderOps(const std::vector<size_t>& order);

  // In order of creation.
  const std::vector<std::unique_ptr<Var>>& vars() const { return vars_; }
  // Error if the name exists in this block or is empty.
  Var* CreateVar(Var var);
  // In this block only; nullptr if there is none.
  Var* FindLocalVar(std::string_view name) const;
  // In this block or its ancestors; nullptr if there is none.
  Var* FindVar(std::string_view name) const;
  // Like FindVar. Error if there is none.
  Var* GetVar(std::string_view name) const;
  // Does nothing if this block has no such variable.
  void RemoveVar(std::string_view name);
  // Removes many in one sweep.
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
  Program();  // with an empty root block
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program(Program&&) = delete;

  size_t block_count() const { return blocks_.size(); }
  // Error if there is no such block.
  Block* block(int32_t index) const;
  Block* root() const { return blocks_.front().get(); }
  // A new block; `parent` must exist (or be -1 for a detached one).
  Block* AppendBlock(int32_t parent);

  // Where the format of the file comes from; kept when a program is loaded and saved.
  int64_t version = 0;
  std::vector<std::pair<std::string, int32_t>> op_versions;
  // The seed of random ops whose own `seed` attribute is 0; 0: not set. The file format has no
  // place for it; the text form has.
  uint64_t seed = 0;

  // A name that no variable of the program bears: `prefix`, `_` and a number. Each call gives
  // another.
  std::string UniqueName(std::string_view prefix);

  // A deep copy. Ops keep their ids.
  std::unique_ptr<Program> Clone() const;
  // A deep copy for evaluation: without the ops whose role is backward, optimize or learning-rate
  // schedule, with `is_test` set to true wherever an op has that attribute (or is one of
  // `ops_with_is_test`, for ops that leave the default out), and without variables nobody uses.
  // Blocks that no op refers to any more keep their index but become empty.
  std::unique_ptr<Program> CloneForTest(
      const std::vector<std::string>& ops_with_is_test = {}) const;
  // A deep copy that keeps in its root block only what the targets need, given the feeds;
  // sub-blocks are kept whole. Error if a target is no variable or is written by no op and isn't
  // persistable or a feed.
  std::unique_ptr<Program> Prune(const std::vector<std::string>& feeds,
                                 const std::vector<std::string>& targets) const;

  // Whether an op of some block has the id.
  bool HasOpId(int64_t id) const;
  // Takes the next op id.
  int64_t NextOpId() { return next_op_id_++; }
  // Makes sure that ids below `id` are not given again.
  void ReserveOpIds(int64_t id) { next_op_id_ = next_op_id_ < id ? id : next_op_id_; }

  // Equal blocks, variables and ops (order included), whatever their ids and creation sites.
  friend bool operator==(const Program& a, const Program& b);

 private:
  // Everything but the blocks.
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
  if (value == nullptr) ThrowAttrType(name, TypeOf(Attribute(T{})));
  return *value;
}

template <typename T>
T Op::Attr(std::string_view name, T fallback) const {
  return FindAttr(name) == nullptr ? std::move(fallback) : Attr<T>(name);
}

}  // namespace skiff
