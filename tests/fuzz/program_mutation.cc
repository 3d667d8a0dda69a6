#include "tests/fuzz/program_mutation.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <type_traits>
#include <utility>
#include <variant>

#include "framework/ir/op_role.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "tests/harness/array_tensor.h"

namespace skiff::fuzz {
namespace {

constexpr DType kDTypes[] = {DType::kBool,    DType::kInt8,   DType::kUint8,   DType::kInt16,
                             DType::kInt32,   DType::kInt64,  DType::kFloat16, DType::kBFloat16,
                             DType::kFloat32, DType::kFloat64};

class Mutator {
 public:
  Mutator(const std::vector<Seed>& seeds, uint64_t number) : seeds_(seeds), random_(number) {
    mutant_.number = number;
    mutant_.seed = &Pick(seeds_);
    mutant_.program = mutant_.seed->program->Clone();
    mutant_.feeds = mutant_.seed->feeds;
    mutant_.fetches = mutant_.seed->fetches;
  }

  Mutant Make() {
    const size_t wanted = 1 + Below(Chance(3) ? 4 : 2);
    // Some changes find nothing to change.
    for (int tries = 0; tries < 50 && mutant_.changes.size() < wanted; ++tries) Change();
    return std::move(mutant_);
  }

 private:
  // ---- random choices

  uint64_t Below(uint64_t limit) { return random_() % limit; }
  bool Chance(uint64_t one_of) { return Below(one_of) == 0; }
  template <typename List>
  auto Pick(List& list) -> decltype(*std::begin(list)) {
    return *std::next(std::begin(list), static_cast<std::ptrdiff_t>(Below(std::size(list))));
  }

  template <typename T>
  T Integer(T value) {
    constexpr auto kLeast = std::numeric_limits<T>::min();
    constexpr auto kMost = std::numeric_limits<T>::max();
    // Wraps around as the file's numbers do.
    const auto wide = static_cast<uint64_t>(value);
    const uint64_t choices[] = {wide + 1,
                                wide - 1,
                                0 - wide,
                                2 * wide,
                                0,
                                1,
                                2,
                                ~uint64_t{0},
                                7,
                                100,
                                uint64_t{1} << (8 + Below(54)),
                                static_cast<uint64_t>(kLeast),
                                static_cast<uint64_t>(kMost),
                                static_cast<uint64_t>(kMost) - 1};
    return static_cast<T>(Pick(choices));
  }

  template <typename T>
  T Real(T value) {
    const T choices[] = {0,
                         1,
                         -1,
                         -value,
                         2 * value,
                         value / 2,
                         std::numeric_limits<T>::max(),
                         std::numeric_limits<T>::infinity(),
                         std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::denorm_min()};
    return Pick(choices);
  }

  std::string Text(const std::string& text) {
    static const std::string kTexts[] = {"", "NHWC", "NCHW", "AnyLayout", "x@GRAD", "SAME", "MAX"};
    return Chance(4) ? text + "_" : Pick(kTexts);
  }

  // ---- parts of the program

  Block* AnyBlock() {
    return mutant_.program->block(static_cast<int32_t>(Below(mutant_.program->block_count())));
  }
  // Returns nullptr if the block that was drawn has none.
  Op* AnyOp() {
    Block* block = AnyBlock();
    return block->ops().empty() ? nullptr : Pick(block->ops()).get();
  }
  Var* AnyVar() {
    Block* block = AnyBlock();
    return block->vars().empty() ? nullptr : Pick(block->vars()).get();
  }
  std::string AnyName() {
    const Var* var = AnyVar();
    return var == nullptr || Chance(20) ? kEmptyVarName : var->name;
  }

  void Note(const auto&... texts) { mutant_.changes.push_back(StrCat(texts...)); }

  void Change() {
    using Kind = void (Mutator::*)();
    static constexpr Kind kOfProgram[] = {
        &Mutator::ChangeAttribute, &Mutator::ChangeAttribute, &Mutator::ChangeAttribute,
        &Mutator::RetypeAttribute, &Mutator::DropAttribute,   &Mutator::AddAttribute,
        &Mutator::ChangeDims,      &Mutator::ChangeDims,      &Mutator::ChangeDType,
        &Mutator::ChangeLoDLevel,  &Mutator::ChangeKind,      &Mutator::ChangeFlags,
        &Mutator::RenameArgument,  &Mutator::RenameArgument,  &Mutator::RenameArgument,
        &Mutator::SwapArguments,   &Mutator::DropArgument,    &Mutator::RepeatArgument,
        &Mutator::AddArgument,     &Mutator::DropOp,          &Mutator::RepeatOp,
        &Mutator::MoveOp,          &Mutator::ChangeType,      &Mutator::ChangeRole,
        &Mutator::ChangeBlockOf,   &Mutator::ClaimGradient,   &Mutator::GraftOp,
        &Mutator::GraftOp,         &Mutator::DropVariable,    &Mutator::HideVariable,
        &Mutator::ChangeFetches};
    static constexpr Kind kOfFeeds[] = {&Mutator::ResizeFeed,   &Mutator::CastFeed,
                                        &Mutator::ChangeLoD,    &Mutator::ChangeValues,
                                        &Mutator::ChangeValues, &Mutator::SwapFeeds};
    const size_t before = mutant_.changes.size();
    if (Chance(4) && !mutant_.feeds.empty()) {
      (this->*Pick(kOfFeeds))();
      mutant_.feeds_are_changed |= mutant_.changes.size() > before;
    } else {
      (this->*Pick(kOfProgram))();
    }
  }

  // ---- attributes

  template <typename T>
  T Changed(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return !value;
    } else if constexpr (std::is_integral_v<T>) {
      return Integer(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return Real(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return Text(value);
    } else if constexpr (std::is_same_v<T, BlockIndex>) {
      return {static_cast<int32_t>(Below(mutant_.program->block_count() + 1))};
    } else if constexpr (std::is_same_v<T, VarName>) {
      return {AnyName()};
    } else {
      return ChangedList(value);
    }
  }

  template <typename T>
  std::vector<T> ChangedList(std::vector<T> list) {
    const uint64_t kind = Below(5);
    if (kind == 0 || list.empty()) {
      list.push_back(list.empty() ? Changed(T{}) : T(list.back()));
    } else if (kind == 1) {
      list.pop_back();
    } else {
      const size_t i = Below(list.size());
      list[i] = Changed(T(list[i]));
    }
    return list;
  }

  Attribute ChangedAttribute(const Attribute& attribute) {
    return std::visit([&](const auto& value) { return Attribute(Changed(value)); },
                      static_cast<const AttributeVariant&>(attribute));
  }

  void ChangeAttribute() {
    Op* op = AnyOp();
    if (op == nullptr || op->attrs.empty()) return;
    auto& [name, value] = Pick(op->attrs);
    value = ChangedAttribute(value);
    Note(op->type, ": ", name, " = ", PrintAttribute(value));
  }

  void RetypeAttribute() {
    Op* op = AnyOp();
    if (op == nullptr || op->attrs.empty()) return;
    const Attribute values[] = {int32_t{1},
                                1.5f,
                                "1",
                                std::vector<int32_t>{1, 2},
                                std::vector<int32_t>{},
                                true,
                                int64_t{1} << 40,
                                BlockIndex{1},
                                std::vector<int64_t>{-1},
                                std::vector<std::string>{"x"},
                                std::vector<bool>{true},
                                0.5};
    auto& [name, value] = Pick(op->attrs);
    value = Pick(values);
    Note(op->type, ": ", name, " = ", PrintAttribute(value));
  }

  void DropAttribute() {
    Op* op = AnyOp();
    if (op == nullptr || op->attrs.empty()) return;
    const std::string name = Pick(op->attrs).first;
    op->attrs.erase(name);
    Note(op->type, ": no ", name);
  }

  void AddAttribute() {
    Op* op = AnyOp();
    const OpDef* def = op == nullptr ? nullptr : DefaultOpRegistry().Find(op->type);
    if (def == nullptr || def->attrs.empty()) return;
    const AttrDef& attr = Pick(def->attrs);
    if (!attr.default_value) return;
    op->SetAttr(attr.name, ChangedAttribute(*attr.default_value));
    Note(op->type, ": ", attr.name, " = ", PrintAttribute(op->attrs.at(attr.name)));
  }

  void ChangeRole() {
    Op* op = AnyOp();
    if (op == nullptr) return;
    constexpr int32_t kRoles[] = {kRoleForward, kRoleBackward, kRoleOptimize, kRoleLRSched,
                                  kRoleLoss};
    const int32_t role = Pick(kRoles);
    op->SetAttr(kOpRoleAttr, Chance(3) ? role | Pick(kRoles) : role);
    Note(op->type, ": role ", op->role());
    if (Chance(2)) return;
    op->SetAttr(kOpRoleVarAttr, std::vector<std::string>{AnyName(), AnyName()});
    Note(op->type, ": ", PrintAttribute(op->attrs.at(kOpRoleVarAttr)));
  }

  // ---- variables

  void ChangeDims() {
    Var* var = AnyVar();
    if (var == nullptr) return;
    std::vector<int64_t>& dims = var->dims;
    const uint64_t kind = Below(6);
    if (kind == 0 || dims.empty()) {
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(Below(dims.size() + 1)),
                  static_cast<int64_t>(Below(4)));
    } else if (kind == 1) {
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(Below(dims.size())));
    } else {
      int64_t& dim = Pick(dims);
      dim = Chance(3) ? -1 : Integer(dim);
    }
    Note("dims of ", var->name, ": [", Join(dims, ", "), "]");
  }

  void ChangeDType() {
    Var* var = AnyVar();
    if (var == nullptr) return;
    var->dtype = Pick(kDTypes);
    Note("dtype of ", var->name, ": ", var->dtype);
  }

  void ChangeLoDLevel() {
    Var* var = AnyVar();
    if (var == nullptr) return;
    var->lod_level = Chance(4) ? Integer(var->lod_level) : static_cast<int32_t>(Below(3));
    Note("LoD level of ", var->name, ": ", var->lod_level);
  }

  void ChangeKind() {
    Var* var = AnyVar();
    if (var == nullptr) return;
    constexpr VarKind kKinds[] = {VarKind::kLoDTensor,      VarKind::kSelectedRows,
                                  VarKind::kStepScopes,     VarKind::kLoDRankTable,
                                  VarKind::kLoDTensorArray, VarKind::kRaw};
    var->kind = Pick(kKinds);
    Note("kind of ", var->name, ": ", VarKindName(var->kind));
  }

  void ChangeFlags() {
    Var* var = AnyVar();
    if (var == nullptr) return;
    bool* const flags[] = {&var->persistable, &var->is_parameter, &var->stop_gradient};
    bool& flag = *Pick(flags);
    flag = !flag;
    Note("flags of ", var->name, ": ", var->persistable, var->is_parameter, var->stop_gradient);
  }

  void DropVariable() {
    Block* block = AnyBlock();
    if (block->vars().empty()) return;
    const std::string name = Pick(block->vars())->name;
    block->RemoveVar(name);
    Note("no variable ", name);
  }

  // Declares a variable in another block, too.
  void HideVariable() {
    const Var* var = AnyVar();
    Block* block = AnyBlock();
    if (var == nullptr || block->FindLocalVar(var->name) != nullptr) return;
    block->CreateVar(*var);
    Note(var->name, " in block ", block->index(), ", too");
  }

  // ---- arguments

  // Returns nullptr if the op that was drawn has none.
  std::vector<std::string>* AnyArguments(Op* op, std::string* what) {
    if (op == nullptr) return nullptr;
    Slots& slots = Chance(2) ? op->inputs : op->outputs;
    if (slots.empty()) return nullptr;
    SlotArguments& slot = Pick(slots);
    *what = StrCat(op->type, ": ", slot.slot);
    return &slot.arguments;
  }

  void RenameArgument() {
    std::string what;
    std::vector<std::string>* arguments = AnyArguments(AnyOp(), &what);
    if (arguments == nullptr || arguments->empty()) return;
    Pick(*arguments) = AnyName();
    Note(what, " = ", Join(*arguments, ", "));
  }

  void SwapArguments() {
    Op* op = AnyOp();
    std::string from, to;
    std::vector<std::string>* a = AnyArguments(op, &from);
    std::vector<std::string>* b = AnyArguments(Chance(2) ? op : AnyOp(), &to);
    if (a == nullptr || b == nullptr || a == b) return;
    a->swap(*b);
    Note(from, " and ", to, " swapped");
  }

  void DropArgument() {
    std::string what;
    std::vector<std::string>* arguments = AnyArguments(AnyOp(), &what);
    if (arguments == nullptr || arguments->empty()) return;
    arguments->erase(arguments->begin() + static_cast<std::ptrdiff_t>(Below(arguments->size())));
    Note(what, " = ", Join(*arguments, ", "));
  }

  void RepeatArgument() {
    std::string what;
    std::vector<std::string>* arguments = AnyArguments(AnyOp(), &what);
    if (arguments == nullptr || arguments->empty()) return;
    arguments->push_back(std::string(Pick(*arguments)));
    Note(what, " = ", Join(*arguments, ", "));
  }

  // Fills a slot that the op may have, and hasn't.
  void AddArgument() {
    Op* op = AnyOp();
    const OpDef* def = op == nullptr ? nullptr : DefaultOpRegistry().Find(op->type);
    if (def == nullptr) return;
    const bool is_input = !Chance(3);
    const std::vector<SlotDef>& slots = is_input ? def->inputs : def->outputs;
    if (slots.empty()) return;
    const std::string slot(Pick(slots).name);
    if (!(is_input ? op->Input(slot) : op->Output(slot)).empty()) return;
    const std::string name = AnyName();
    is_input ? op->SetInput(slot, {name}) : op->SetOutput(slot, {name});
    Note(op->type, ": ", slot, " = ", name);
  }

  // Gives an output the name of a gradient, which is a claim about its shape.
  void ClaimGradient() {
    Op* op = AnyOp();
    const Var* var = AnyVar();
    if (op == nullptr || var == nullptr || op->outputs.empty()) return;
    std::vector<std::string>& arguments = Pick(op->outputs).arguments;
    if (arguments.empty()) return;
    std::string& argument = Pick(arguments);
    Var copy = *var;
    copy.name += kGradSuffix;
    Block* root = mutant_.program->root();
    if (root->FindVar(copy.name) == nullptr) root->CreateVar(copy);
    argument = copy.name;
    const bool is_backward = Chance(2);
    if (is_backward) op->SetAttr(kOpRoleAttr, int32_t{kRoleBackward});
    mutant_.fetches.push_back(argument);
    Note(op->type, ": writes ", argument, is_backward ? " as a backward op" : "");
  }

  // ---- ops

  void DropOp() {
    Block* block = AnyBlock();
    if (block->ops().empty()) return;
    const size_t i = Below(block->ops().size());
    Note("no ", block->ops()[i]->type);
    block->RemoveOps(i, i + 1);
  }

  void RepeatOp() {
    const Op* op = AnyOp();
    if (op == nullptr) return;
    Block* block = AnyBlock();
    Op copy = *op;
    copy.id = -1;
    Note(op->type, " again in block ", block->index());
    block->InsertOp(Below(block->ops().size() + 1), std::move(copy));
  }

  void MoveOp() {
    Block* block = AnyBlock();
    if (block->ops().size() < 2) return;
    const size_t from = Below(block->ops().size());
    Op op = *block->ops()[from];
    block->RemoveOps(from, from + 1);
    const size_t to = Below(block->ops().size() + 1);
    Note(op.type, " moved from ", from, " to ", to);
    block->InsertOp(to, std::move(op));
  }

  void ChangeType() {
    Op* op = AnyOp();
    if (op == nullptr) return;
    static const std::vector<std::string> kTypes = DefaultOpRegistry().Types();
    const std::string type = Chance(3) ? op->type + "_grad" : Pick(kTypes);
    Note(op->type, " becomes ", type);
    op->type = type;
  }

  void ChangeBlockOf() {
    const auto count = static_cast<uint64_t>(mutant_.program->block_count());
    if (count < 2) return;
    Block* block = AnyBlock();
    block->forward_block_index = static_cast<int32_t>(Below(count + 1)) - 1;
    Note("forward block of ", block->index(), ": ", block->forward_block_index);
  }

  // Inserts an op of another program, with arguments of this one.
  void GraftOp() {
    const Seed& other = Pick(seeds_);
    const Program& program = *other.program;
    const Block& from = *program.block(static_cast<int32_t>(Below(program.block_count())));
    if (from.ops().empty()) return;
    Op op = *Pick(from.ops());
    op.id = -1;
    Block* block = AnyBlock();
    for (Slots* slots : {&op.inputs, &op.outputs}) {
      for (SlotArguments& slot : *slots) {
        for (std::string& argument : slot.arguments) {
          argument = Chance(8) ? argument : NameLike(from.FindVar(argument), slots == &op.outputs);
        }
      }
    }
    if (!op.outputs.empty() && !op.outputs[0].arguments.empty())
      mutant_.fetches.push_back(op.outputs[0].arguments[0]);
    Note("grafted ", PrintOp(op));
    block->InsertOp(Below(block->ops().size() + 1), std::move(op));
  }

  // Returns the name of a variable of this program, most times one that fits `like`; a new one for
  // some outputs.
  std::string NameLike(const Var* like, bool is_output) {
    if (is_output && !Chance(3)) {
      const std::string name = StrCat("grafted_", Below(1000));
      if (mutant_.program->root()->FindVar(name) == nullptr) {
        Var var = like == nullptr ? Var{} : *like;
        var.name = name;
        var.persistable = false;
        mutant_.program->root()->CreateVar(var);
      }
      return name;
    }
    std::string name = AnyName();
    for (int tries = 0; tries < 8 && like != nullptr; ++tries) {
      const Var* var = AnyVar();
      if (var == nullptr) continue;
      name = var->name;
      if (var->dtype == like->dtype && var->dims.size() == like->dims.size()) break;
    }
    return name;
  }

  void ChangeFetches() {
    mutant_.fetches.push_back(AnyName());
    Note("fetches ", mutant_.fetches.back());
  }

  // ---- feeds

  void ResizeFeed() {
    auto& [name, tensor] = Pick(mutant_.feeds);
    Shape shape = tensor.shape();
    const uint64_t kind = Below(4);
    if (kind == 0 && shape.rank() < Shape::kMaxRank) {
      shape.Append(static_cast<int64_t>(Below(3)));
    } else if (shape.rank() == 0) {
      return;
    } else if (kind == 1) {
      shape = Shape(shape.dims().first(static_cast<size_t>(shape.rank()) - 1));
    } else {
      const int axis = Chance(2) ? 0 : static_cast<int>(Below(static_cast<uint64_t>(shape.rank())));
      shape[axis] = static_cast<int64_t>(Below(2 * static_cast<uint64_t>(shape[axis]) + 3));
    }
    if (shape.element_count() > 10'000) return;
    const LoD lod = tensor.lod();
    tensor = Repeated(tensor, shape);
    // The lengths stay, but for the last one, if that can be.
    if (!lod.empty() && shape.rank() > 0) FitLoD(lod, &tensor);
    Note("feed ", name, ": ", shape);
  }

  static Tensor Repeated(const Tensor& tensor, const Shape& shape) {
    Tensor resized(shape, tensor.dtype());
    const auto bytes = static_cast<size_t>(resized.byte_count());
    const auto given = static_cast<size_t>(tensor.byte_count());
    auto* to = static_cast<char*>(resized.raw_data());
    if (given == 0) {
      if (bytes > 0) std::memset(to, 0, bytes);
      return resized;
    }
    for (size_t i = 0; i < bytes; i += given)
      std::memcpy(to + i, tensor.raw_data(), std::min(given, bytes - i));
    return resized;
  }

  static void FitLoD(LoD lod, Tensor* tensor) {
    const auto rows = static_cast<uint64_t>(tensor->shape()[0]);
    for (uint64_t& offset : lod.back()) offset = std::min(offset, rows);
    lod.back().back() = rows;
    tensor->set_lod(std::move(lod));
  }

  void CastFeed() {
    auto& [name, tensor] = Pick(mutant_.feeds);
    const DType dtype = Pick(kDTypes);
    if (dtype == tensor.dtype()) return;
    const LoD lod = tensor.lod();
    tensor = harness::Cast(tensor, dtype);
    if (!lod.empty()) tensor.set_lod(lod);
    Note("feed ", name, ": ", dtype);
  }

  void ChangeLoD() {
    auto& [name, tensor] = Pick(mutant_.feeds);
    if (tensor.shape().rank() == 0) return;
    LoD lod;
    auto rows = static_cast<uint64_t>(tensor.shape()[0]);
    for (uint64_t levels = Below(3); levels > 0; --levels) {
      std::vector<uint64_t> offsets = {0};
      // Sequences may be empty.
      for (uint64_t parts = Below(rows + 2); parts > 0; --parts) offsets.push_back(Below(rows + 1));
      std::ranges::sort(offsets);
      if (offsets.size() == 1) offsets.push_back(rows);
      offsets.back() = rows;
      rows = offsets.size() - 1;
      lod.insert(lod.begin(), std::move(offsets));
    }
    Tensor copy = CopyToCpu(tensor);
    copy.set_lod(lod);
    tensor = std::move(copy);
    Note("feed ", name, ": ", lod.size(), " levels");
  }

  void ChangeValues() {
    auto& [name, tensor] = Pick(mutant_.feeds);
    if (tensor.element_count() == 0 || IsHalf(tensor.dtype())) return;
    Tensor copy = CopyToCpu(tensor);
    VisitDType<float, double, int8_t, int16_t, int32_t, int64_t, bool, uint8_t>(
        copy.dtype(), name, [&]<typename T>(T) {
          for (uint64_t changes = 1 + Below(3); changes > 0; --changes) {
            const size_t i = Below(static_cast<uint64_t>(copy.element_count()));
            if constexpr (std::is_same_v<T, bool>) {
              auto* bytes = static_cast<uint8_t*>(copy.raw_data());
              bytes[i] = static_cast<uint8_t>(Chance(4) ? 2 + Below(254) : Below(2));
            } else {
              copy.values<T>()[i] = Changed(T(copy.values<T>()[i]));
            }
          }
        });
    tensor = std::move(copy);
    Note("feed ", name, ": values");
  }

  void SwapFeeds() {
    auto& [name, tensor] = Pick(mutant_.feeds);
    auto& [other_name, other] = Pick(mutant_.feeds);
    if (name == other_name) return;
    std::swap(tensor, other);
    Note("feeds ", name, " and ", other_name, " swapped");
  }

  const std::vector<Seed>& seeds_;
  std::mt19937_64 random_;
  Mutant mutant_;
};

}  // namespace

Mutant MakeMutant(const std::vector<Seed>& seeds, uint64_t number) {
  return Mutator(seeds, number).Make();
}

}  // namespace skiff::fuzz
