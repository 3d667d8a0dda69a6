// Blocks, variables and ops are held by unique_ptr, so their addresses stay valid while others are
// added or removed; passes and analyses rely on that. Slots are vectors, not maps: an op has a
// handful of them, and files must keep their order.
#include "framework/ir/program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

struct VarKindEntry {
  VarKind kind;
  std::string_view name;
};

constexpr std::array<VarKindEntry, 10> kVarKinds{{
    {VarKind::kLoDTensor, "lod_tensor"},
    {VarKind::kSelectedRows, "selected_rows"},
    {VarKind::kFeedMinibatch, "feed_minibatch"},
    {VarKind::kFetchList, "fetch_list"},
    {VarKind::kStepScopes, "step_scopes"},
    {VarKind::kLoDRankTable, "lod_rank_table"},
    {VarKind::kLoDTensorArray, "lod_tensor_array"},
    {VarKind::kPlaceList, "place_list"},
    {VarKind::kReader, "reader"},
    {VarKind::kRaw, "raw"},
}};

const std::vector<std::string>& ArgumentsOf(const Slots& slots, std::string_view slot) {
  static const std::vector<std::string> kNone;
  for (const SlotArguments& entry : slots) {
    if (entry.slot == slot) return entry.arguments;
  }
  return kNone;
}

void SetArguments(Slots* slots, std::string_view slot, std::vector<std::string> arguments) {
  for (SlotArguments& entry : *slots) {
    if (entry.slot != slot) continue;
    entry.arguments = std::move(arguments);
    return;
  }
  slots->push_back({std::string(slot), std::move(arguments)});
}

std::vector<std::string> VariableNames(const Slots& slots) {
  std::vector<std::string> names;
  for (const SlotArguments& entry : slots) {
    for (const std::string& argument : entry.arguments) {
      if (argument != kEmptyVarName) names.push_back(argument);
    }
  }
  return names;
}

}  // namespace

std::string_view VarKindName(VarKind kind) {
  for (const VarKindEntry& entry : kVarKinds) {
    if (entry.kind == kind) return entry.name;
  }
  Throw(ErrorCode::kInvalidArgument, "unknown variable kind ", static_cast<int32_t>(kind));
}

VarKind VarKindFromName(std::string_view name) {
  for (const VarKindEntry& entry : kVarKinds) {
    if (entry.name == name) return entry.kind;
  }
  Throw(ErrorCode::kInvalidArgument, "unknown variable kind \"", name, "\"");
}

bool IsVarKind(int32_t value) {
  return std::any_of(kVarKinds.begin(), kVarKinds.end(), [value](const VarKindEntry& entry) {
    return static_cast<int32_t>(entry.kind) == value;
  });
}

namespace ir {

// Floating-point fields by bits, so that a NaN equals itself.
bool operator==(const Var& a, const Var& b) {
  return a.name == b.name && a.kind == b.kind && a.dtype == b.dtype && a.dims == b.dims &&
         a.lod_level == b.lod_level && a.persistable == b.persistable &&
         a.is_parameter == b.is_parameter && a.stop_gradient == b.stop_gradient &&
         a.need_check_feed == b.need_check_feed && a.trainable == b.trainable &&
         std::bit_cast<uint32_t>(a.learning_rate_factor) ==
             std::bit_cast<uint32_t>(b.learning_rate_factor) &&
         SameAttributes(a.attrs, b.attrs);
}

bool operator==(const Op& a, const Op& b) {
  return a.type == b.type && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.is_target == b.is_target && SameAttributes(a.attrs, b.attrs);
}

}  // namespace ir

// ---- Op

Op::Op() = default;
Op::Op(std::string type) : type(std::move(type)) {}
Op::Op(const Op& other) = default;
Op::Op(Op&& other) noexcept = default;
Op& Op::operator=(const Op& other) = default;
Op& Op::operator=(Op&& other) noexcept = default;
Op::~Op() = default;

const std::vector<std::string>& Op::Input(std::string_view slot) const {
  return ArgumentsOf(inputs, slot);
}

const std::vector<std::string>& Op::Output(std::string_view slot) const {
  return ArgumentsOf(outputs, slot);
}

Op& Op::SetInput(std::string_view slot, std::vector<std::string> arguments) {
  SetArguments(&inputs, slot, std::move(arguments));
  return *this;
}

Op& Op::SetOutput(std::string_view slot, std::vector<std::string> arguments) {
  SetArguments(&outputs, slot, std::move(arguments));
  return *this;
}

Op& Op::SetAttr(std::string_view name, Attribute value) {
  attrs.insert_or_assign(std::string(name), std::move(value));
  return *this;
}

bool Op::HasAttr(std::string_view name) const { return FindAttr(name) != nullptr; }

const Attribute* Op::FindAttr(std::string_view name) const {
  const auto found = attrs.find(std::string(name));
  return found == attrs.end() ? nullptr : &found->second;
}

void Op::ThrowAttrType(std::string_view name, AttrType expected) const {
  Throw(ErrorCode::kInvalidArgument, type, ": attribute \"", name, "\" is of type ",
        AttrTypeName(TypeOf(*FindAttr(name))), ", expected ", AttrTypeName(expected));
}

void Op::ThrowNoAttr(std::string_view name) const {
  Throw(ErrorCode::kNotFound, type, ": attribute \"", name, "\" is not set");
}

std::vector<std::string> Op::InputNames() const { return VariableNames(inputs); }

std::vector<std::string> Op::OutputNames() const { return VariableNames(outputs); }

std::vector<int32_t> Op::SubBlocks() const {
  std::vector<int32_t> indices;
  for (const auto& [name, attribute] : attrs) {
    if (const auto* one = std::get_if<BlockIndex>(&attribute)) indices.push_back(one->value);
    const auto* several = std::get_if<std::vector<BlockIndex>>(&attribute);
    if (several == nullptr) continue;
    for (BlockIndex block : *several) indices.push_back(block.value);
  }
  return indices;
}

// ---- Block

Block::Block(Program* program, int32_t index, int32_t parent)
    : program_(program), index_(index), parent_(parent) {}

Block* Block::parent() const { return parent_ < 0 ? nullptr : program_->block(parent_); }

Op* Block::AppendOp(Op op) { return InsertOp(ops_.size(), std::move(op)); }

Op* Block::InsertOp(size_t position, Op op) {
  SKIFF_ENFORCE(position <= ops_.size(), kOutOfRange, "block ", index_, ": can't insert op ",
                op.type, " at position ", position, " of ", ops_.size(), " ops");
  // A copied op keeps its id, by which it draws random numbers, if that is free in this program.
  if (op.id < 0 || program_->HasOpId(op.id)) {
    op.id = program_->NextOpId();
  } else {
    program_->ReserveOpIds(op.id + 1);
  }
  const auto place = ops_.begin() + static_cast<ptrdiff_t>(position);
  return ops_.insert(place, std::make_unique<Op>(std::move(op)))->get();
}

Op* Block::AppendOpWithId(Op op) {
  program_->ReserveOpIds(op.id + 1);
  return ops_.emplace_back(std::make_unique<Op>(std::move(op))).get();
}

void Block::RemoveOps(size_t begin, size_t end) {
  SKIFF_ENFORCE(begin <= end && end <= ops_.size(), kOutOfRange, "block ", index_,
                ": can't remove the ops [", begin, ", ", end, ") of ", ops_.size());
  const auto first = ops_.begin();
  ops_.erase(first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end));
}

void Block::ReorderOps(const std::vector<size_t>& order) {
  // All checks come first: a wrong order must not leave half of the ops moved.
  std::vector<bool> named(ops_.size(), false);
  for (size_t position : order) {
    SKIFF_ENFORCE(position < ops_.size(), kOutOfRange, "block ", index_, ": order names op ",
                  position, " of ", ops_.size());
    SKIFF_ENFORCE(!named[position], kInvalidArgument, "block ", index_, ": order names op ",
                  position, " twice");
    named[position] = true;
  }
  std::vector<std::unique_ptr<Op>> reordered;
  reordered.reserve(order.size());
  for (size_t position : order) reordered.push_back(std::move(ops_[position]));
  ops_ = std::move(reordered);
}

Var* Block::CreateVar(Var var) {
  SKIFF_ENFORCE(!var.name.empty(), kInvalidArgument, "block ", index_,
                ": a variable needs a name, found an empty one");
  SKIFF_ENFORCE(FindLocalVar(var.name) == nullptr, kAlreadyExists, "block ", index_,
                ": variable \"", var.name, "\" exists already");
  vars_.push_back(std::make_unique<Var>(std::move(var)));
  Var* created = vars_.back().get();
  vars_by_name_.emplace(created->name, created);
  return created;
}

Var* Block::FindLocalVar(std::string_view name) const {
  const auto found = vars_by_name_.find(std::string(name));
  return found == vars_by_name_.end() ? nullptr : found->second;
}

Var* Block::FindVar(std::string_view name) const {
  const auto exists = [this](int32_t index) {
    return index >= 0 && static_cast<size_t>(index) < program_->block_count();
  };
  // A parent has a lower index than its block (AppendBlock), so this ends.
  for (const Block* block = this; block != nullptr; block = block->parent()) {
    if (Var* var = block->FindLocalVar(name)) return var;
    // A gradient block sees what its forward block has left. The count ends a chain of forward
    // blocks that leads back to its start.
    int32_t forward = block->forward_block_index;
    for (size_t i = 0; exists(forward) && i < program_->block_count(); ++i) {
      const Block* seen = program_->block(forward);
      if (Var* var = seen->FindLocalVar(name)) return var;
      forward = seen->forward_block_index;
    }
  }
  return nullptr;
}

Var* Block::GetVar(std::string_view name) const {
  Var* var = FindVar(name);
  SKIFF_ENFORCE(var != nullptr, kNotFound, "block ", index_, ": no variable \"", name,
                "\" in it or its ancestors");
  return var;
}

void Block::RemoveVar(std::string_view name) { RemoveVars({std::string(name)}); }

void Block::RemoveVars(const std::vector<std::string>& names) {
  // One pass over vars_: removing them one by one would take quadratic time.
  std::unordered_set<const Var*> removed;
  for (const std::string& name : names) {
    const auto found = vars_by_name_.find(name);
    if (found == vars_by_name_.end()) continue;
    removed.insert(found->second);
    vars_by_name_.erase(found);
  }
  std::erase_if(vars_, [&removed](const auto& var) { return removed.contains(var.get()); });
}

// ---- Program

Program::Program() { AppendBlock(-1); }

Program::Program(Program&& other) noexcept : Program() { *this = std::move(other); }

Program& Program::operator=(Program&& other) noexcept {
  if (this == &other) return *this;
  version = std::exchange(other.version, 0);
  op_versions = std::exchange(other.op_versions, {});
  seed = std::exchange(other.seed, 0);
  blocks_ = std::exchange(other.blocks_, {});
  next_op_id_ = std::exchange(other.next_op_id_, 0);
  name_counters_ = std::exchange(other.name_counters_, {});
  for (const auto& block : blocks_) block->program_ = this;
  other.AppendBlock(-1);
  return *this;
}

Program::~Program() = default;

size_t Program::block_count() const { return blocks_.size(); }

Block* Program::root() const { return blocks_.front().get(); }

Block* Program::block(int32_t index) const {
  SKIFF_ENFORCE(index >= 0 && static_cast<size_t>(index) < blocks_.size(), kOutOfRange, "no block ",
                index, ": the program has ", blocks_.size());
  return blocks_[static_cast<size_t>(index)].get();
}

Block* Program::AppendBlock(int32_t parent) {
  // Parents come before their children. So walks towards the root end, and a copy can append blocks
  // in order.
  SKIFF_ENFORCE(parent >= -1 && parent < static_cast<int64_t>(blocks_.size()), kOutOfRange,
                "a new block can't have the parent ", parent, ": the program has ", blocks_.size(),
                " blocks");
  const auto index = static_cast<int32_t>(blocks_.size());
  blocks_.push_back(std::make_unique<Block>(this, index, parent));
  return blocks_.back().get();
}

bool Program::HasOpId(int64_t id) const {
  if (id >= next_op_id_) return false;
  return std::ranges::any_of(blocks_, [id](const auto& block) {
    return std::ranges::any_of(block->ops(), [id](const auto& op) { return op->id == id; });
  });
}

std::string Program::UniqueName(std::string_view prefix) {
  // In all blocks, since a name in a sub-block would hide a variable outside.
  const auto exists = [this](const std::string& name) {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [&name](const auto& block) { return block->FindLocalVar(name) != nullptr; });
  };
  // The counter goes on even if variables are removed: a name is never used for two variables of a
  // program's history.
  int64_t& counter = name_counters_[std::string(prefix)];
  while (true) {
    std::string name = StrCat(prefix, "_", counter++);
    if (!exists(name)) return name;
  }
}

bool operator==(const Program& a, const Program& b) {
  const auto same = [](const auto& x, const auto& y) { return *x == *y; };
  const auto same_list = [&same](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  return std::equal(a.blocks_.begin(), a.blocks_.end(), b.blocks_.begin(), b.blocks_.end(),
                    [&same_list](const auto& x, const auto& y) {
                      return x->parent_index() == y->parent_index() &&
                             x->forward_block_index == y->forward_block_index &&
                             same_list(x->vars(), y->vars()) && same_list(x->ops(), y->ops());
                    });
}

}  // namespace skiff
