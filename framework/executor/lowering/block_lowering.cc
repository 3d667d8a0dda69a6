#include "framework/executor/lowering/block_lowering.h"

#include <algorithm>
#include <utility>

#include "framework/analysis/aliasing.h"
#include "framework/analysis/nested_blocks.h"
#include "framework/analysis/running_state.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/executor/lowering/constant_outputs.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/var_meta.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {
namespace {

ValueId FinalValue(ValueId value, const std::vector<Instruction>& copies) {
  for (const Instruction& copy : copies) {
    if (copy.inputs[0] == value) return copy.outputs[0];
  }
  return value;
}

}  // namespace

TensorMeta MetaOfHeld(const Tensor& tensor) {
  return {.shape = tensor.shape(),
          .dtype = tensor.dtype(),
          .lod_level = static_cast<int32_t>(tensor.lod().size()),
          .layout = tensor.layout(),
          .persistable = true,
          .lod = tensor.lod().empty()
                     ? nullptr
                     : std::make_shared<const LoDGroup>(LoDGroup{.offsets = tensor.lod()})};
}

BlockLowering::BlockLowering(const LoweringInputs& inputs, const Block& block, Capture capture)
    : inputs_(inputs),
      block_(&block),
      first_block_(&block),
      capture_(std::move(capture)),
      contents_(inputs.registry, &plan_),
      arrays_(inputs.arrays.get()) {
  plan_.place = inputs.place;
}

std::vector<const Block*> BlockLowering::blocks() const {
  if (gradient_block_ == nullptr) return {first_block_};
  return {first_block_, gradient_block_};
}

const Var* BlockLowering::FindVar(const std::string& name) const {
  // Only a gradient block sees variables of a block that isn't its ancestor.
  if (block_->forward_block_index < 0) return block_->FindVar(name);
  return VisibleVars(*block_).Find(name).var;
}

ValueId BlockLowering::AddValue(const std::string& name, const TensorMeta& meta, Storage storage) {
  // What a loop leaves has passed no shape rule.
  CheckElementLimit(meta.shape.dims());
  const ValueId value = plan_.values.Add({.name = name,
                                          .meta = meta,
                                          .storage = storage,
                                          .place = PlaceOfValue(name, meta, storage),
                                          .alias_of = {}});
  // Those of the value whose meta this is.
  plan_[value].meta.contents = nullptr;
  return value;
}

// Returns the place of a value. The placement pass moves those in the arena to where their writers
// run. The feeds of a body are where it runs.
Place BlockLowering::PlaceOfValue(const std::string& name, const TensorMeta& meta,
                                  Storage storage) const {
  const bool is_fed = storage == Storage::kFeed && capture_ == nullptr;
  const bool is_of_host = meta.is_array || is_fed || storage == Storage::kKernelOwned;
  if (is_of_host) return Place::Cpu();
  // A body sees what the plan around it makes of the scope.
  if (storage != Storage::kScope || capture_ != nullptr) return plan_.place;
  const Tensor* held = inputs_.scope.Find(name);
  return held == nullptr ? plan_.place : held->place();
}

void BlockLowering::AddFeed(const std::string& name, ValueId value) {
  current_[name] = value;
  unread_feeds_.insert(name);
}

bool BlockLowering::IsUnknown(const std::string& name) const {
  const auto found = current_.find(name);
  return found != current_.end() && unknown_.contains(found->second);
}

ValueId BlockLowering::Current(const std::string& name) const {
  const auto found = current_.find(name);
  return found == current_.end() ? ValueId() : found->second;
}

ValueId BlockLowering::TryRead(const std::string& name) {
  if (name == kEmptyVarName) return {};
  // AddOp refuses an op that overwrites a feed before anything has read it.
  unread_feeds_.erase(name);
  const auto it = current_.find(name);
  if (it != current_.end()) {
    if (plan_[it->second].meta.is_array) arrays_.NoteRead(name);
    return it->second;
  }
  const Var* var = FindVar(name);
  if (var != nullptr && var->kind == VarKind::kLoDTensorArray) {
    arrays_.NoteRead(name);
    return current_[name] = AddArray(name);
  }
  const Tensor* tensor = inputs_.scope.Find(name);
  if (tensor != nullptr && (var == nullptr || var->persistable || capture_ == nullptr)) {
    if (var != nullptr) CheckHeld(*var, *tensor);
    return current_[name] = AddValue(name, MetaOfHeld(*tensor), Storage::kScope);
  }
  if (capture_ == nullptr || var == nullptr || block_->FindLocalVar(name) != nullptr) return {};
  const ValueId captured = capture_(name);
  if (captured) current_[name] = captured;
  return captured;
}

// The value that a read of the name sees now.
ValueId BlockLowering::Read(const std::string& name) {
  if (name == kEmptyVarName) return {};
  const ValueId value = TryRead(name);
  if (value) return value;
  const Var* var = FindVar(name);
  SKIFF_ENFORCE(var != nullptr, kNotFound, "variable \"", name, "\" does not exist");
  SKIFF_ENFORCE(!var->persistable, kFailedPrecondition, "variable \"", name,
                "\" is not initialized: run the startup program or load parameters first");
  Throw(ErrorCode::kFailedPrecondition, "variable \"", name,
        "\" is read before anything writes it; is a feed missing?");
}

void BlockLowering::CheckHeld(const Var& var, const Tensor& tensor) const {
  SKIFF_ENFORCE(tensor.has_data(), kFailedPrecondition, "variable \"", var.name,
                "\" in the scope has no data, expected a tensor with data");
  SKIFF_ENFORCE(tensor.layout().is_plain(), kFailedPrecondition, "variable \"", var.name,
                "\" in the scope has the layout ", tensor.layout(), ", expected the plain layout");
  const bool fits = var.dtype == tensor.dtype() && DimsAgree(var.dims, tensor.shape().dims());
  SKIFF_ENFORCE(fits, kInvalidArgument, "variable \"", var.name, "\": the scope holds ",
                tensor.dtype(), " ", tensor.shape(), ", the program declares ", var.dtype, " [",
                Join(var.dims, ", "), "]");
}

void BlockLowering::AddOp(const Op& given, size_t position) {
  if (given.type == "feed") return CheckFeeds(given);
  if (given.type == "fetch") return;
  const OpDef& def = inputs_.registry.Get(given.type);
  CheckOp(def, given);
  if (def.block != nullptr) return inputs_.lower_loop(this, given, def, position);
  // Else a batch norm in test mode would count as a writer of its statistics.
  if (const std::vector<std::string> kept = KeptRunningState(def, given); !kept.empty()) {
    auto reader = std::make_shared<Op>(given);
    for (SlotArguments& slot : reader->outputs) {
      for (std::string& name : slot.arguments) {
        if (std::ranges::count(kept, name) > 0) name = kEmptyVarName;
      }
    }
    plan_.made_ops.push_back(reader);
    return AddOp(*reader, position);
  }
  Instruction instruction = ReadInputs(given, def, position);
  FindGivenAttributes(&instruction);
  const Op& op = *instruction.op;
  if (def.data_dependent_shape && MakeConstants(instruction)) return;
  // Inputs were read first, so an op that reads and writes one name reads the old value.
  DefineOutputs(op, def, &instruction);
  std::vector<Instruction> copies = WriteScopeOutOfPlace(op, def, &instruction);
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
void BlockLowering::CheckFeeds(const Op& op) const {
  for (const std::string& name : op.Output("Out")) {
    SKIFF_ENFORCE(current_.contains(name), kInvalidArgument, "feed \"", name, "\" is missing");
  }
}

// Returns the op's instruction, with inputs and without outputs.
Instruction BlockLowering::ReadInputs(const Op& op, const OpDef& def, size_t position) {
  Instruction instruction;
  instruction.op = &op;
  instruction.def = &def;
  instruction.block = block_->index();
  instruction.position = position;
  instruction.place = plan_.place;
  for (const SlotDef& slot : def.inputs) {
    for (const std::string& name : op.Input(slot.name)) instruction.inputs.push_back(Read(name));
  }
  instruction.reads_data = ReadsData(def, op);
  // The op that sets the rows must have run, even if only these are read. The gradient half knows
  // all rows when an iteration begins.
  if (capture_ == nullptr || block_ != first_block_) return instruction;
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (varying_.contains(instruction.inputs[i])) instruction.reads_data[i] = true;
  }
  return instruction;
}

KnownContents::Contents BlockLowering::ConstantContents(ValueId value, std::string* why) {
  if (!ContentsMayVary(value)) return contents_.Find(value, why);
  *why = StrCat("rows of \"", plan_[value].name, "\" that vary");
  return nullptr;
}

// In a plan for exact rows, the root block has the same rows in all runs.
bool BlockLowering::ContentsMayVary(ValueId value) const {
  return (inputs_.is_for_capacity || capture_ != nullptr) && RowsVary(value);
}

// What all runs and iterations have in common becomes an attribute of the op, which then is an op
// like others, and those that computed it are dead code. What varies stays an input: the ops that
// compute it stay as well, and PlanRows finds the numbers for other rows.
void BlockLowering::FindGivenAttributes(Instruction* instruction) {
  const Op& op = *instruction->op;
  std::vector<bool> gives;
  std::vector<TensorMeta> metas;
  bool vary = false;
  for (const SlotDef& slot : instruction->def->inputs) {
    const bool gives_attribute = GivesAttribute(op, slot);
    for (size_t i = 0; i < op.Input(slot.name).size(); ++i) {
      const ValueId value = instruction->inputs[gives.size()];
      gives.push_back(gives_attribute);
      if (gives_attribute) {
        std::string why = kEmptyVarName;
        const bool is_known = value && contents_.Find(value, &why) != nullptr;
        SKIFF_ENFORCE(is_known, kUnimplemented, op.type, ": input \"", slot.name, "\", variable \"",
                      op.Input(slot.name)[i], "\", gives the attribute \"", slot.attribute,
                      "\" and depends on ", why,
                      ": expected numbers that follow from shapes and constants");
        vary = vary || ContentsMayVary(value);
      }
      metas.push_back(value ? plan_[value].meta : TensorMeta{});
    }
  }
  if (std::ranges::count(gives, true) == 0) return;
  if (vary) {
    for (size_t i = 0; i < gives.size(); ++i) {
      if (gives[i]) instruction->reads_data[i] = true;
    }
    return;
  }
  auto known = std::make_shared<const Op>(
      WithGivenAttributes(OpContext(op, *instruction->def, std::move(metas), {})));
  CheckOp(*instruction->def, *known);
  std::vector<ValueId> inputs;
  std::vector<bool> reads_data;
  for (size_t i = 0; i < gives.size(); ++i) {
    if (gives[i]) continue;
    inputs.push_back(instruction->inputs[i]);
    reads_data.push_back(instruction->reads_data[i]);
  }
  instruction->op = known.get();
  instruction->inputs = std::move(inputs);
  instruction->reads_data = std::move(reads_data);
  plan_.made_ops.push_back(std::move(known));
}

std::optional<std::vector<TensorMeta>> BlockLowering::ConstantInputs(
    const Instruction& instruction) {
  std::vector<TensorMeta> metas;
  std::string why;
  for (const SlotDef& slot : instruction.def->inputs) {
    for (size_t i = 0; i < instruction.op->Input(slot.name).size(); ++i) {
      const ValueId value = instruction.inputs[metas.size()];
      const bool is_known = !value || (slot.shape_only ? !ContentsMayVary(value)
                                                       : ConstantContents(value, &why) != nullptr);
      if (!is_known) return std::nullopt;
      metas.push_back(value ? plan_[value].meta : TensorMeta{});
    }
  }
  return metas;
}

bool BlockLowering::MakeConstants(const Instruction& instruction) {
  const OpDef* constant = inputs_.registry.Find("assign_value");
  if (constant == nullptr) return false;
  std::optional<std::vector<TensorMeta>> inputs = ConstantInputs(instruction);
  if (!inputs) return false;
  const std::vector<std::string> names = OutputOrder(*instruction.def, *instruction.op);
  for (const std::string& name : names) {
    if (unread_feeds_.contains(name)) return false;  // which DefineOutputs refuses
  }
  const auto outputs =
      ConstantOutputsOf(inputs_.registry, *instruction.op, *instruction.def, std::move(*inputs));
  if (!outputs) return false;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& [contents, attributes] = (*outputs)[i];
    if (contents == nullptr) continue;
    const ValueId value =
        Write(*constant, names[i],
              {.shape = contents->shape(), .dtype = contents->dtype(), .layout = {}});
    Append(MakeInstruction(&plan_, *constant, instruction, attributes, {}, {{"Out", value}}));
    plan_[value].meta.contents = contents;
  }
  return true;
}

// Infers the metas of the outputs and makes a value of each.
void BlockLowering::DefineOutputs(const Op& op, const OpDef& def, Instruction* instruction) {
  const std::vector<std::string> names = OutputOrder(def, op);
  std::vector<TensorMeta> outputs;
  for (const std::string& name : names) {
    SKIFF_ENFORCE(!unread_feeds_.contains(name), kInvalidArgument, "feed \"", name,
                  "\": the op computes this variable before anything reads the feed");
    const Var* var = name == kEmptyVarName ? nullptr : FindVar(name);
    outputs.push_back(var == nullptr ? TensorMeta{} : MetaOf(*var));
  }
  std::vector<TensorMeta> inputs;
  for (ValueId value : instruction->inputs) {
    inputs.push_back(value ? plan_[value].meta : TensorMeta{});
  }
  OpContext context(op, def, std::move(inputs), std::move(outputs), plan_.place);
  InferOutputs(&context);
  const bool reads_varying = ReadsVaryingRows(*instruction);
  // Elements that are all alike have the rows that the plan says, and the op sets none.
  const bool reads_equal_elements =
      !reads_varying && std::ranges::any_of(instruction->inputs, [&](ValueId value) {
        return value && plan_[value].meta.is_array;
      });
  const bool sets_rows = def.sets_rows && def.sets_rows(op) && !reads_equal_elements;
  instruction->sets_rows = sets_rows && capture_ != nullptr;
  for (size_t i = 0; i < names.size(); ++i) {
    TensorMeta& meta = context.mutable_outputs()[i];
    // A declared LoD that the shape rule doesn't give isn't there.
    const bool has_none = meta.lod_level > 0 && meta.lod == nullptr && !meta.is_array;
    if (has_none && !sets_rows && !def.data_dependent_shape) meta.lod_level = 0;
    if (sets_rows && !meta.is_array) DeclareRowsOfRun(&meta);
    if (def.data_dependent_shape && (op.role() & kRoleBackward) != 0)
      TakeForwardRows(names[i], &meta);
    instruction->outputs.push_back(names[i] == kEmptyVarName ? ValueId()
                                                             : Define(def, names[i], meta));
    if (!instruction->outputs.back() || !(sets_rows || reads_varying)) continue;
    varying_.insert(instruction->outputs.back());
    if (meta.is_array) arrays_.MarkVarying(names[i]);
  }
}

bool BlockLowering::RowsVary(ValueId value) const {
  const PlanValue& found = plan_[value];
  if (!found.meta.is_array) return found.meta.lod != nullptr || varying_.contains(value);
  const ArrayMeta* known = arrays_.Find(found.name);
  return known != nullptr && known->rows_vary;
}

bool BlockLowering::ReadsVaryingRows(const Instruction& instruction) const {
  return std::ranges::any_of(instruction.inputs,
                             [&](ValueId value) { return value && RowsVary(value); });
}

// In a body, room for all rows is planned (LoopRows). In the root block another segment begins,
// whose plan knows the rows.
void BlockLowering::DeclareRowsOfRun(TensorMeta* meta) const {
  if (capture_ == nullptr) {
    if (meta->shape.rank() > 0) meta->shape[0] = -1;
    meta->lod = nullptr;
  } else if (meta->lod != nullptr) {
    // It follows from no other.
    meta->lod = std::make_shared<const LoDGroup>(LoDGroup{.offsets = meta->lod->offsets});
  }
}

// A gradient has the shape of its forward variable, which is known by then. So it needs no segment
// of its own, in which the forward half of a branch would be missing.
void BlockLowering::TakeForwardRows(const std::string& gradient, TensorMeta* meta) {
  const ValueId forward = Current(std::string(ForwardName(gradient)));
  if (!forward || meta->shape.rank() == 0 || meta->shape[0] >= 0) return;
  const Shape& known = plan_[forward].meta.shape;
  if (known.is_known() && known.rank() == meta->shape.rank()) meta->shape[0] = known[0];
}

bool BlockLowering::OwnsArray(const std::string& name) const {
  const auto declares = [&](const Block* block) { return block->FindLocalVar(name) != nullptr; };
  return !arrays_.IsTiedTo(name) && std::ranges::any_of(blocks(), declares);
}

ValueId BlockLowering::AddArray(const std::string& name) {
  const std::string& outer = arrays_.OuterName(name);
  if (const ArrayMeta* known = arrays_.Find(outer)) {
    return AddValue(outer, known->element, Storage::kScope);
  }
  TensorMeta meta = MetaOf(*FindVar(name));
  meta.lod_level = -1;
  return AddValue(outer, meta, Storage::kScope);
}

ValueId BlockLowering::Define(const OpDef& def, const std::string& name, const TensorMeta& meta) {
  const Var* var = FindVar(name);
  // Blocks inside go by what the variable is.
  const bool is_declared =
      var == nullptr || (var->kind == VarKind::kLoDTensorArray) == meta.is_array;
  SKIFF_ENFORCE(is_declared, kInvalidArgument, "output \"", name, "\" would be ",
                meta.is_array ? "an array of tensors: the program declares a tensor"
                              : "a tensor: the program declares an array of tensors");
  if (meta.is_array) {
    const TensorMeta& element = arrays_.AddElement(def.type, name, meta);
    return AddValue(arrays_.OuterName(name), element, Storage::kScope);
  }
  const bool is_persistable = var != nullptr && var->persistable;
  const bool depends_on_data = def.data_dependent_shape || def.sets_rows;
  const bool is_unknown =
      depends_on_data && (!meta.shape.is_known() || (meta.lod_level > 0 && meta.lod == nullptr));
  SKIFF_ENFORCE(!is_unknown || capture_ == nullptr, kUnimplemented, "the shape ", meta.shape,
                " or LoD of \"", name,
                "\" depends on data inside a loop or branch: expected a known one");
  if (!meta.shape.is_known() && depends_on_data) {
    SKIFF_ENFORCE(!is_persistable, kUnimplemented, "the shape ", meta.shape,
                  " of the persistable output \"", name,
                  "\" depends on data: expected a known shape");
    return *unknown_.insert(AddValue(name, meta, Storage::kKernelOwned)).first;
  }
  SKIFF_ENFORCE(meta.shape.is_known(), kInvalidArgument, "output \"", name,
                "\" would have the shape ", meta.shape, ": expected extents of at least 0");
  if (is_persistable) return DefinePersistable(def, name, meta);
  const ValueId value = AddValue(name, meta, Storage::kArena);
  // The rows are known, but the LoD depends on data.
  if (is_unknown) unknown_.insert(value);
  return value;
}

ValueId BlockLowering::DefinePersistable(const OpDef& def, const std::string& name,
                                         const TensorMeta& meta) {
  SKIFF_ENFORCE(!meta.is_selected_rows(), kUnimplemented, "the persistable output \"", name,
                "\" would be selected rows: expected a dense tensor");
  // Nothing gives a scope variable the LoD of a run.
  SKIFF_ENFORCE(meta.lod == nullptr, kUnimplemented, "the persistable output \"", name,
                "\" would be ragged: expected a dense tensor");
  // A scope variable has one storage for all its values, so each write must have the shape and
  // dtype that the scope holds or that the first write of the run gave it.
  const auto made = created_.find(name);
  const Tensor* tensor = inputs_.scope.Find(name);
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
std::vector<Instruction> BlockLowering::WriteScopeOutOfPlace(const Op& op, const OpDef& def,
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
    SKIFF_ENFORCE(!ValueOf(output).meta.is_array, kInvalidArgument, "the op reads the array \"",
                  name, "\" and writes to it: expected another array for its output");
    // The temporary keeps the variable's name, for reports.
    const ValueId aside = AddTemporaryLike(output);
    instruction->outputs[i] = aside;
    copies.push_back(CopyFor(op, def, instruction->position, aside, output));
  }
  return copies;
}

ValueId BlockLowering::Write(const OpDef& def, const std::string& name, const TensorMeta& meta) {
  return current_[name] = Define(def, name, meta);
}

ValueId BlockLowering::AddTemporaryLike(ValueId value) {
  TensorMeta meta = ValueOf(value).meta;
  meta.persistable = false;
  const std::string name = ValueOf(value).name;
  return AddValue(name, meta, Storage::kArena);
}

Instruction BlockLowering::CopyFor(const Op& op, const OpDef& def, size_t position, ValueId from,
                                   ValueId to) const {
  Instruction copy;
  copy.kind = InstructionKind::kCopy;
  copy.op = &op;
  copy.def = &def;
  copy.block = block_->index();
  copy.position = position;
  copy.place = plan_.place;
  copy.inputs = {from};
  copy.outputs = {to};
  copy.reads_data = {true};
  return copy;
}

ValueId BlockLowering::AppendCopy(const Op& op, const OpDef& def, size_t position, ValueId from) {
  const ValueId to = AddTemporaryLike(from);
  Append(CopyFor(op, def, position, from, to));
  return to;
}

}  // namespace skiff
