#include "framework/executor/lowering.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "framework/analysis/aliasing.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/host_slots.h"
#include "framework/op/var_meta.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {
namespace {

TensorMeta MetaOfHeld(const Tensor& tensor, bool persistable) {
  return {.shape = tensor.shape(),
          .dtype = tensor.dtype(),
          .lod_level = static_cast<int32_t>(tensor.lod().size()),
          .layout = tensor.layout(),
          .persistable = persistable,
          .lod = tensor.lod().empty()
                     ? nullptr
                     : std::make_shared<const LoDGroup>(LoDGroup{.offsets = tensor.lod()})};
}

// Walks the ops in order and keeps, for each name, the value that a read of it sees now (current_).
// Each write makes another value. So the plan is in SSA form, and no later analysis has to compare
// names, except for scope variables, whose storage is shared by all their values.
class Lowering {
 public:
  Lowering(const OpRegistry& registry, const Program& program, Place place, const Scope& scope,
           const OpPositions& positions)
      : registry_(registry), block_(*program.root()), scope_(scope), positions_(positions) {
    plan_.place = place;
  }

  Segment Run(const std::vector<std::pair<std::string, TensorMeta>>& feeds,
              const std::vector<std::string>& fetches, size_t first_op) {
    // Feeds first, in their order: BindFeeds assigns tensors by position.
    for (const auto& [name, meta] : feeds) {
      first_op == 0 ? AddFeed(name, meta) : AddCarried(name, meta);
    }
    const auto& ops = block_.ops();
    Segment segment{.plan = {}, .first_op = first_op, .next_op = first_op, .fetches = fetches};
    for (; segment.next_op < ops.size(); ++segment.next_op) {
      const Op& op = *ops[segment.next_op];
      if (ReadsUnknownShape(op)) break;
      const auto known = positions_.find(op.id);
      const size_t position = known == positions_.end() ? segment.next_op : known->second;
      try {
        AddOp(op, position);
      } catch (const Error& error) {
        throw error.WithContext(DescribeOp(op, block_.index(), position));
      }
    }
    segment.is_last = segment.next_op == ops.size();
    if (!segment.is_last) {
      // Before the first segment runs, as it would be if it were the only one.
      for (const std::string& name : fetches) {
        if (!IsWrittenFrom(segment.next_op, name)) CheckFetch(name);
      }
      segment.fetches = CarriedFrom(segment.next_op, fetches);
    }
    for (const std::string& name : segment.fetches) AddFetch(name);
    segment.plan = std::move(plan_);
    return segment;
  }

 private:
  ValueId AddValue(const std::string& name, const TensorMeta& meta, Storage storage) {
    return plan_.values.Add({.name = name, .meta = meta, .storage = storage, .alias_of = {}});
  }

  void AddFeed(const std::string& name, const TensorMeta& meta) {
    const Var* var = block_.FindVar(name);
    SKIFF_ENFORCE(var != nullptr, kNotFound, "feed \"", name,
                  "\": the program has no such variable");
    SKIFF_ENFORCE(!var->persistable, kInvalidArgument, "feed \"", name,
                  "\": a persistable variable isn't fed; assign it in the scope");
    SKIFF_ENFORCE(var->dtype == meta.dtype, kInvalidArgument, "feed \"", name, "\": dtype ",
                  meta.dtype, " given, ", var->dtype, " expected");
    SKIFF_ENFORCE(DimsAgree(var->dims, meta.shape.dims()), kInvalidArgument, "feed \"", name,
                  "\": shape ", meta.shape, " given, ", Shape(var->dims), " expected");
    SKIFF_ENFORCE(var->lod_level == meta.lod_level, kInvalidArgument, "feed \"", name,
                  "\": LoD of ", meta.lod_level, " levels given, ", var->lod_level, " expected");
    SKIFF_ENFORCE(!current_.contains(name), kInvalidArgument, "feed \"", name, "\" is given twice");
    const ValueId value = AddValue(name, meta, Storage::kFeed);
    current_[name] = value;
    unread_feeds_.insert(name);
    plan_.feeds.push_back(value);
  }

  // What an earlier segment made, as the program says, or was fed.
  void AddCarried(const std::string& name, const TensorMeta& meta) {
    const ValueId value = AddValue(name, meta, Storage::kFeed);
    current_[name] = value;
    plan_.feeds.push_back(value);
  }

  bool ReadsUnknownShape(const Op& op) const {
    return std::ranges::any_of(op.InputNames(), [&](const std::string& name) {
      const auto found = current_.find(name);
      return found != current_.end() && unknown_.contains(found->second);
    });
  }

  // Returns the variables whose present values ops from `next_op` on read, or the user fetches.
  std::vector<std::string> CarriedFrom(size_t next_op,
                                       const std::vector<std::string>& fetches) const {
    std::vector<std::string> carried;
    std::unordered_set<std::string> seen;
    const auto add = [&](const std::string& name) {
      const auto found = current_.find(name);
      if (found == current_.end() || ValueOf(found->second).storage == Storage::kScope) return;
      if (seen.insert(name).second) carried.push_back(name);
    };
    for (size_t i = next_op; i < block_.ops().size(); ++i) {
      std::ranges::for_each(block_.ops()[i]->InputNames(), add);
      // What an op writes is another value from here on.
      for (const std::string& name : block_.ops()[i]->OutputNames()) seen.insert(name);
    }
    std::ranges::for_each(fetches, add);
    return carried;
  }

  // The value that a read of the name sees now.
  ValueId Read(const std::string& name) {
    if (name == kEmptyVarName) return {};
    // AddOp refuses an op that overwrites a feed before anything has read it.
    unread_feeds_.erase(name);
    const auto it = current_.find(name);
    if (it != current_.end()) return it->second;
    const Var* var = block_.FindVar(name);
    SKIFF_ENFORCE(var != nullptr, kNotFound, "variable \"", name, "\" does not exist");
    const Tensor* tensor = scope_.Find(name);
    SKIFF_ENFORCE(tensor != nullptr || !var->persistable, kFailedPrecondition, "variable \"", name,
                  "\" is not initialized: run the startup program or load parameters first");
    SKIFF_ENFORCE(tensor != nullptr, kFailedPrecondition, "variable \"", name,
                  "\" is read before anything writes it; is a feed missing?");
    CheckHeld(*var, *tensor);
    return current_[name] = AddValue(name, MetaOfHeld(*tensor, true), Storage::kScope);
  }

  // What the scope holds must be what the program declares.
  void CheckHeld(const Var& var, const Tensor& tensor) const {
    SKIFF_ENFORCE(tensor.has_data(), kFailedPrecondition, "variable \"", var.name,
                  "\" in the scope has no data, expected a tensor with data");
    SKIFF_ENFORCE(tensor.layout().is_plain(), kFailedPrecondition, "variable \"", var.name,
                  "\" in the scope has the layout ", tensor.layout(),
                  ", expected the plain layout");
    const bool fits = var.dtype == tensor.dtype() && DimsAgree(var.dims, tensor.shape().dims());
    SKIFF_ENFORCE(fits, kInvalidArgument, "variable \"", var.name, "\": the scope holds ",
                  tensor.dtype(), " ", tensor.shape(), ", the program declares ", var.dtype, " [",
                  Join(var.dims, ", "), "]");
  }

  // Returns the place of a scope variable's tensor, and for any other value the place on which the
  // program runs.
  Place PlaceOfValue(ValueId value) const {
    const PlanValue& found = ValueOf(value);
    const Tensor* held = found.storage == Storage::kScope ? scope_.Find(found.name) : nullptr;
    return held == nullptr ? plan_.place : held->place();
  }

  void CheckPlace(ValueId value, const std::string& slot, Place expected) const {
    if (!value) return;
    const Place found = PlaceOfValue(value);
    const std::string& name = ValueOf(value).name;
    SKIFF_ENFORCE(found == expected || expected != plan_.place, kFailedPrecondition, "variable \"",
                  name, "\" is on ", found, ", the program runs on ", plan_.place);
    SKIFF_ENFORCE(found == expected, kFailedPrecondition, slot, " \"", name, "\" is on ", found,
                  ", expected ", expected, ": the op has ", kOnHostAttr,
                  " = true, so that it computes in host memory");
  }

  void AddOp(const Op& op, size_t position) {
    if (op.type == "feed") return CheckFeeds(op);
    if (op.type == "fetch") return;
    const OpDef& def = registry_.Get(op.type);
    CheckOp(def, op);
    Instruction instruction = ReadInputs(op, def, position);
    // Inputs were read first, so an op that reads and writes one name reads the old value.
    DefineOutputs(op, def, &instruction);
    std::vector<Instruction> copies = WriteScopeOutOfPlace(op, def, &instruction);
    CheckOutputPlaces(op, def, instruction);
    const std::vector<std::string> names = OutputOrder(def, op);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kEmptyVarName) continue;
      current_[names[i]] = FinalValue(instruction.outputs[i], copies);
    }
    plan_.instructions.push_back(std::move(instruction));
    std::ranges::move(copies, std::back_inserter(plan_.instructions));
  }

  // Fluid's programs have ops for feeds and fetches. Here the caller names both, so these ops only
  // tell which feeds a saved program needs.
  void CheckFeeds(const Op& op) const {
    for (const std::string& name : op.Output("Out")) {
      SKIFF_ENFORCE(current_.contains(name), kInvalidArgument, "feed \"", name, "\" is missing");
    }
  }

  // Returns the op's instruction, with inputs and without outputs.
  Instruction ReadInputs(const Op& op, const OpDef& def, size_t position) {
    Instruction instruction;
    instruction.op = &op;
    instruction.def = &def;
    instruction.position = position;
    for (const SlotDef& slot : def.inputs) {
      const Place place = PlaceOfSlot(def, op, slot.name, plan_.place);
      for (const std::string& name : op.Input(slot.name)) {
        instruction.inputs.push_back(Read(name));
        CheckPlace(instruction.inputs.back(), slot.name, place);
      }
    }
    instruction.reads_data = ReadsData(def, op);
    return instruction;
  }

  // Infers the metas of the outputs and makes a value of each.
  void DefineOutputs(const Op& op, const OpDef& def, Instruction* instruction) {
    const std::vector<std::string> names = OutputOrder(def, op);
    std::vector<TensorMeta> outputs;
    for (const std::string& name : names) {
      SKIFF_ENFORCE(!unread_feeds_.contains(name), kInvalidArgument, "feed \"", name,
                    "\": the op computes this variable before anything reads the feed");
      const Var* var = name == kEmptyVarName ? nullptr : block_.FindVar(name);
      outputs.push_back(var == nullptr ? TensorMeta{} : MetaOf(*var));
    }
    std::vector<TensorMeta> inputs;
    for (ValueId value : instruction->inputs) {
      inputs.push_back(value ? plan_[value].meta : TensorMeta{});
    }
    OpContext context(op, def, std::move(inputs), std::move(outputs), plan_.place);
    InferOutputs(&context);
    for (size_t i = 0; i < names.size(); ++i) {
      instruction->outputs.push_back(
          names[i] == kEmptyVarName ? ValueId() : Define(def, names[i], context.outputs()[i]));
    }
  }

  void CheckOutputPlaces(const Op& op, const OpDef& def, const Instruction& instruction) const {
    size_t output = 0;
    for (const SlotDef& slot : def.outputs) {
      const Place place = PlaceOfSlot(def, op, slot.name, plan_.place);
      for (size_t i = 0; i < op.Output(slot.name).size(); ++i) {
        CheckPlace(instruction.outputs[output++], slot.name, place);
      }
    }
  }

  ValueId Define(const OpDef& def, const std::string& name, const TensorMeta& meta) {
    const Var* var = block_.FindVar(name);
    const bool is_persistable = var != nullptr && var->persistable;
    if (!meta.shape.is_known() && def.data_dependent_shape) {
      SKIFF_ENFORCE(!is_persistable, kUnimplemented, "the shape ", meta.shape,
                    " of the persistable output \"", name,
                    "\" depends on data: expected a known shape");
      return *unknown_.insert(AddValue(name, meta, Storage::kMade)).first;
    }
    SKIFF_ENFORCE(meta.shape.is_known(), kInvalidArgument, "output \"", name,
                  "\" would have the shape ", meta.shape, ": expected extents of at least 0");
    if (!is_persistable) {
      const ValueId value = AddValue(name, meta, Storage::kArena);
      // The rows are known, but the LoD depends on data.
      if (def.data_dependent_shape && meta.lod_level > 0 && meta.lod == nullptr) {
        unknown_.insert(value);
      }
      return value;
    }
    SKIFF_ENFORCE(!meta.is_selected_rows(), kUnimplemented, "the persistable output \"", name,
                  "\" would be selected rows: expected a dense tensor");
    // A scope variable has one storage for all its values, so each write must have the shape and
    // dtype that the scope holds or that the first write of the run gave it.
    const auto made = created_.find(name);
    const Tensor* tensor = scope_.Find(name);
    if (tensor != nullptr || made != created_.end()) {
      const Shape& shape = tensor != nullptr ? tensor->shape() : made->second.shape;
      const DType dtype = tensor != nullptr ? tensor->dtype() : made->second.dtype;
      SKIFF_ENFORCE(shape == meta.shape && dtype == meta.dtype, kInvalidArgument, def.type,
                    " would write ", meta.dtype, " ", meta.shape, " to \"", name,
                    "\", which the scope holds as ", dtype, " ", shape);
    } else {
      created_[name] = meta;
    }
    return AddValue(name, meta, Storage::kScope);
  }

  // An op that reads a scope variable and writes it, but doesn't declare that it works in place on
  // that pair, could read what it has already written. Lets it write to a temporary, and returns
  // the copies to the variable that must follow.
  std::vector<Instruction> WriteScopeOutOfPlace(const Op& op, const OpDef& def,
                                                Instruction* instruction) {
    std::vector<Instruction> copies;
    std::unordered_multimap<std::string, size_t> scope_inputs;  // by the variable's name
    for (size_t j = 0; j < instruction->inputs.size(); ++j) {
      const ValueId input = instruction->inputs[j];
      if (!input || ValueOf(input).storage != Storage::kScope) continue;
      scope_inputs.emplace(ValueOf(input).name, j);
    }
    if (scope_inputs.empty()) return copies;
    const InputOutputPairs pairs = InPlacePairs(plan_, *instruction);
    const std::set<std::pair<int, int>> in_place(pairs.begin(), pairs.end());
    for (size_t i = 0; i < instruction->outputs.size(); ++i) {
      const ValueId output = instruction->outputs[i];
      if (!output || ValueOf(output).storage != Storage::kScope) continue;
      const std::string name = ValueOf(output).name;
      const auto [first, last] = scope_inputs.equal_range(name);
      const bool conflicts = std::any_of(first, last, [&](const auto& input) {
        return !in_place.contains({static_cast<int>(input.second), static_cast<int>(i)});
      });
      if (!conflicts) continue;
      TensorMeta meta = ValueOf(output).meta;
      // The temporary keeps the variable's name, for reports.
      meta.persistable = false;
      const ValueId aside = AddValue(name, meta, Storage::kArena);
      Instruction copy;
      copy.kind = InstructionKind::kCopy;
      copy.op = &op;
      copy.def = &def;
      copy.position = instruction->position;
      copy.inputs = {aside};
      copy.outputs = {output};
      copy.reads_data = {true};
      instruction->outputs[i] = aside;
      copies.push_back(std::move(copy));
    }
    return copies;
  }

  static ValueId FinalValue(ValueId value, const std::vector<Instruction>& copies) {
    for (const Instruction& copy : copies) {
      if (copy.inputs[0] == value) return copy.outputs[0];
    }
    return value;
  }

  bool IsWrittenFrom(size_t first_op, const std::string& name) const {
    return std::any_of(block_.ops().begin() + static_cast<ptrdiff_t>(first_op), block_.ops().end(),
                       [&](const auto& op) {
                         const std::vector<std::string> names = op->OutputNames();
                         return std::ranges::find(names, name) != names.end();
                       });
  }

  void CheckFetch(const std::string& name) const {
    SKIFF_ENFORCE(current_.contains(name) || scope_.Find(name) != nullptr, kNotFound, "fetch \"",
                  name, "\": ",
                  block_.FindVar(name) == nullptr ? "the program has no such variable"
                                                  : "nothing writes this variable");
  }

  void AddFetch(const std::string& name) {
    CheckFetch(name);
    if (!current_.contains(name)) {
      const Var* var = block_.FindVar(name);
      if (var != nullptr) CheckHeld(*var, scope_.Get(name));
      current_[name] = AddValue(name, MetaOfHeld(scope_.Get(name), true), Storage::kScope);
    }
    plan_.fetches.push_back(current_[name]);
  }

  const PlanValue& ValueOf(ValueId value) const { return plan_[value]; }

  const OpRegistry& registry_;
  const Block& block_;
  const Scope& scope_;
  const OpPositions& positions_;
  Plan plan_;
  std::unordered_map<std::string, ValueId> current_;
  std::unordered_set<std::string> unread_feeds_;
  std::set<ValueId> unknown_;  // whose shape or LoD only a run tells
  // The metas of persistables that the program writes and the scope lacks.
  std::unordered_map<std::string, TensorMeta> created_;
};

}  // namespace

Segment LowerSegment(const OpRegistry& registry, const Program& program, Place place,
                     const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                     const std::vector<std::string>& fetches, const Scope& scope,
                     const OpPositions& positions, size_t first_op) {
  return Lowering(registry, program, place, scope, positions).Run(feeds, fetches, first_op);
}

Plan LowerProgram(const OpRegistry& registry, const Program& program, Place place,
                  const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                  const std::vector<std::string>& fetches, const Scope& scope,
                  const OpPositions& positions) {
  return LowerSegment(registry, program, place, feeds, fetches, scope, positions).plan;
}

}  // namespace skiff
