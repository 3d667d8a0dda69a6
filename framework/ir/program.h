// The parts of a program. A Program owns its Blocks; a Block owns its Vars and Ops. All are plain
// data with stable addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/ir/api/program.h"
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

// Public headers know these names in the namespace ir: a user who writes `using namespace skiff`
// may have a Block of his own.
namespace ir {

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

class Op {
 public:
  Op();
  explicit Op(std::string type);
  // Defined out of line, like Attribute's: compiled once, not in every file that has an op.
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
  // Appends an op as it is. Requires that no op of the program has its id.
  Op* AppendOpWithId(Op op);
  // Removes ops [begin, end). Throws Error unless begin <= end <= number of ops.
  void RemoveOps(size_t begin, size_t end);
  // Reorders the ops: op i becomes what op order[i] was. Ops not in `order` are removed. Throws
  // Error if an index is out of range or occurs twice.
  void ReorderOps(const std::vector<size_t>& order);

  // In order of creation.
  const std::vector<std::unique_ptr<Var>>& vars() const { return vars_; }
  // Throws Error if the name is empty or in use in this block.
  Var* CreateVar(Var var);
  // Searches this block only. Returns nullptr if there is no such variable.
  Var* FindLocalVar(std::string_view name) const;
  // Searches this block, then the ancestors; for a gradient block also the forward block, which
  // keeps the variables that it has left. Returns nullptr if there is no such variable.
  Var* FindVar(std::string_view name) const;
  // Like FindVar, but throws Error if there is no such variable.
  Var* GetVar(std::string_view name) const;
  // Does nothing if this block has no such variable.
  void RemoveVar(std::string_view name);
  // Removes all named variables in one pass over the block's variables.
  void RemoveVars(const std::vector<std::string>& names);

 private:
  friend class skiff::Program;  // tells the blocks when it moves

  Program* program_;
  int32_t index_;
  int32_t parent_;
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<std::unique_ptr<Var>> vars_;
  std::unordered_map<std::string, Var*> vars_by_name_;
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

}  // namespace ir

using ir::Block;
using ir::Op;
using ir::Var;

}  // namespace skiff
