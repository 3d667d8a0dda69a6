#include "framework/plan/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/plan/fused_blocks.h"

namespace skiff {
namespace {

constexpr std::array<std::pair<Recompute, std::string_view>, 5> kRecomputeNames = {
    {{Recompute::kNothing, "nothing"},
     {Recompute::kCheapOps, "cheap_ops"},
     {Recompute::kCheckpoints, "checkpoints"},
     {Recompute::kBudget, "budget"},
     {Recompute::kLeastMemory, "least_memory"}}};

std::vector<TensorMeta> MetasOf(const Plan& plan, const std::vector<int32_t>& values) {
  std::vector<TensorMeta> metas;
  metas.reserve(values.size());
  for (int32_t value : values) {
    metas.push_back(value < 0 ? TensorMeta{} : plan.values[static_cast<size_t>(value)].meta);
  }
  return metas;
}

void PrintValue(const Plan& plan, int32_t index, std::ostream& stream) {
  if (index < 0) {
    stream << kEmptyVarName;
    return;
  }
  const PlanValue& value = plan.values[static_cast<size_t>(index)];
  stream << value.name << "#" << index << " " << value.meta.dtype << value.meta.shape;
  if (!value.meta.layout.is_plain()) stream << " " << value.meta.layout;
  switch (value.storage) {
    case Storage::kScope:
      stream << " @scope";
      break;
    case Storage::kFeed:
      stream << " @feed";
      break;
    case Storage::kArena:
      if (value.alias_of >= 0) {
        stream << " =#" << value.alias_of;
      } else if (value.offset >= 0) {
        stream << " @" << value.offset;
      }
      break;
  }
}

void PrintValues(const Plan& plan, const std::vector<int32_t>& values, std::ostream& stream) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) stream << ", ";
    PrintValue(plan, values[i], stream);
  }
}

// Where the arguments of `slot` begin among those of all slots; -1 if it has no argument i.
int IndexInSlots(const std::vector<SlotDef>& defs, const Slots& slots, std::string_view slot,
                 size_t i) {
  size_t index = 0;
  for (const SlotDef& def : defs) {
    const auto found = std::ranges::find(slots, def.name, &SlotArguments::slot);
    const size_t arguments = found == slots.end() ? 0 : found->arguments.size();
    if (def.name == slot) return i < arguments ? static_cast<int>(index + i) : -1;
    index += arguments;
  }
  return -1;
}

// Fills the slots of an op and the values of an instruction, in the order of the definition.
void FillSlots(const Plan& plan, const std::vector<SlotDef>& defs, const SlotValues& given,
               Slots* slots, std::vector<int32_t>* values) {
  for (const SlotDef& def : defs) {
    for (const auto& [slot, value] : given) {
      if (slot != def.name || value < 0) continue;
      slots->push_back({slot, {plan.values[static_cast<size_t>(value)].name}});
      values->push_back(value);
    }
  }
}

}  // namespace

int32_t Instruction::InputIn(std::string_view slot, size_t i) const {
  const int index = IndexInSlots(def->inputs, op->inputs, slot, i);
  return index < 0 ? -1 : inputs[static_cast<size_t>(index)];
}

int32_t Instruction::OutputIn(std::string_view slot, size_t i) const {
  const int index = IndexInSlots(def->outputs, op->outputs, slot, i);
  return index < 0 ? -1 : outputs[static_cast<size_t>(index)];
}

std::string Instruction::Name() const {
  if (kind == InstructionKind::kCopy) return "copy";
  if (kind == InstructionKind::kOp) return op->type;
  std::vector<std::string> types;
  for (const Instruction& member : members) types.push_back(member.op->type);
  return StrCat("fused(", Join(types, ","), ")");
}

Instruction MakeInstruction(Plan* plan, const OpDef& def, const Instruction& origin,
                            const AttributeMap& attrs, const SlotValues& inputs,
                            const SlotValues& outputs) {
  auto op = std::make_shared<Op>(def.type);
  op->attrs = attrs;
  op->site = origin.op->site;
  op->id = origin.op->id;
  op->SetAttr(kOpRoleAttr, origin.op->role());
  if (origin.op->HasAttr(kOpNamescopeAttr)) {
    op->SetAttr(kOpNamescopeAttr, origin.op->Attr<std::string>(kOpNamescopeAttr));
  }
  Instruction made;
  made.def = &def;
  made.position = origin.position;
  FillSlots(*plan, def.inputs, inputs, &op->inputs, &made.inputs);
  FillSlots(*plan, def.outputs, outputs, &op->outputs, &made.outputs);
  for (const SlotArguments& slot : op->inputs) {
    made.reads_data.push_back(!def.FindInput(slot.slot)->shape_only);
  }
  CheckOp(def, *op);
  made.op = op.get();
  plan->made_ops.push_back(std::move(op));
  return made;
}

std::vector<std::vector<size_t>> DataReaders(const Plan& plan) {
  std::vector<std::vector<size_t>> readers(plan.values.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      if (instruction.inputs[j] < 0 || !instruction.reads_data[j]) continue;
      std::vector<size_t>& of_value = readers[static_cast<size_t>(instruction.inputs[j])];
      if (of_value.empty() || of_value.back() != i) of_value.push_back(i);
    }
  }
  for (int32_t fetch : plan.fetches) {
    readers[static_cast<size_t>(fetch)].push_back(plan.instructions.size());
  }
  return readers;
}

std::vector<int64_t> LastReads(const Plan& plan) {
  std::vector<int64_t> last;
  last.reserve(plan.values.size());
  for (const std::vector<size_t>& readers : DataReaders(plan)) {
    last.push_back(readers.empty() ? -1 : static_cast<int64_t>(readers.back()));
  }
  return last;
}

std::vector<Life> StorageLives(const Plan& plan) {
  const std::vector<int64_t> last_reads = LastReads(plan);
  std::vector<Life> lives(plan.values.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto instant = static_cast<int32_t>(i);
    for (int32_t output : plan.instructions[i].outputs) {
      if (output < 0) continue;
      Life& life = lives[static_cast<size_t>(plan.StorageOf(output))];
      if (life.first < 0) life.first = instant;
      const auto last_read = static_cast<int32_t>(last_reads[static_cast<size_t>(output)]);
      life.last = std::max({life.last, instant, last_read});
    }
  }
  const auto is_skipped = [&](const PlanValue& value) {
    return std::ranges::count(plan.memory.skip, value.name) > 0;
  };
  if (plan.memory.skip.empty()) return lives;
  for (size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].first < 0 || !is_skipped(plan.values[i])) continue;
    lives[i] = {.first = 0, .last = static_cast<int32_t>(plan.instructions.size())};
  }
  return lives;
}

std::vector<int64_t> LiveBytes(const Plan& plan) {
  const std::vector<Life> lives = StorageLives(plan);
  // What comes and goes at each instant, added up below.
  std::vector<int64_t> bytes(plan.instructions.size() + 2, 0);
  for (size_t i = 0; i < plan.values.size(); ++i) {
    if (plan.values[i].storage != Storage::kArena || lives[i].first < 0) continue;
    const int64_t size = StorageBytes(plan.values[i]);
    bytes[static_cast<size_t>(lives[i].first)] += size;
    bytes[static_cast<size_t>(lives[i].last) + 1] -= size;
  }
  bytes.resize(plan.instructions.size());
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::vector<int64_t>& workspaces = plan.instructions[i].workspace_bytes;
    bytes[i] = std::accumulate(workspaces.begin(), workspaces.end(), bytes[i]);
  }
  return bytes;
}

std::vector<std::pair<int, int>> InPlacePairs(const Plan& plan, const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kFused) return PlaceFused(plan, instruction).in_place;
  std::vector<std::pair<int, int>> pairs;
  if (instruction.kind == InstructionKind::kCopy) return pairs;
  const PrepareContext context = ContextOf(plan, instruction);
  for (const auto& [input, output] : instruction.def->in_place) {
    const int from = context.InputIndex(input);
    const int to = context.OutputIndex(output);
    if (from >= 0 && to >= 0) pairs.emplace_back(from, to);
  }
  return pairs;
}

bool WritesScopeOf(const Plan& plan, const std::vector<int32_t>& values, size_t begin, size_t end) {
  const auto in_scope = [&](int32_t value) {
    return value >= 0 && plan.values[static_cast<size_t>(value)].storage == Storage::kScope;
  };
  const auto same_variable = [&](int32_t a, int32_t b) {
    return in_scope(a) && in_scope(b) &&
           plan.values[static_cast<size_t>(a)].name == plan.values[static_cast<size_t>(b)].name;
  };
  for (size_t i = begin; i < end; ++i) {
    for (int32_t output : plan.instructions[i].outputs) {
      const bool hits =
          std::ranges::any_of(values, [&](int32_t value) { return same_variable(value, output); });
      if (hits) return true;
    }
  }
  return false;
}

std::string_view RecomputeName(Recompute recompute) {
  return std::ranges::find(kRecomputeNames, recompute,
                           &std::pair<Recompute, std::string_view>::first)
      ->second;
}

Recompute ParseRecompute(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [recompute, known] : kRecomputeNames) {
    if (known == name) return recompute;
    names.push_back(known);
  }
  Throw(ErrorCode::kInvalidArgument, "recompute \"", name, "\": expected one of ",
        Join(names, ", "));
}

void Plan::CoverWithOneSegment() {
  segments = {{.begin = 0, .end = instructions.size(), .row_capacity = 0}};
}

int64_t StorageBytes(const PlanValue& value) {
  return ByteCount(StorageElements(value.meta.shape, value.meta.layout), value.meta.dtype);
}

std::string_view Plan::ForcedKernel(std::string_view type) const {
  const auto found = forced_kernels.find(type);
  return found == forced_kernels.end() ? std::string_view() : found->second;
}

int32_t Plan::StorageOf(int32_t value) const {
  while (values[static_cast<size_t>(value)].alias_of >= 0) {
    value = values[static_cast<size_t>(value)].alias_of;
  }
  return value;
}

std::vector<bool> ConstantInputs(const Plan& plan, const Instruction& instruction) {
  std::vector<bool> is_constant;
  for (const int32_t input : instruction.inputs) {
    is_constant.push_back(input >= 0 &&
                          plan.values[static_cast<size_t>(input)].storage == Storage::kScope &&
                          !WritesScopeOf(plan, {input}, 0, plan.instructions.size()));
  }
  return is_constant;
}

PrepareContext ContextOf(const Plan& plan, const Instruction& instruction) {
  return PrepareContext(*instruction.op, *instruction.def, MetasOf(plan, instruction.inputs),
                        MetasOf(plan, instruction.outputs), plan.place);
}

std::string PrintPlan(const Plan& plan) {
  std::ostringstream stream;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    stream << i << ": ";
    PrintValues(plan, instruction.outputs, stream);
    stream << " = " << instruction.Name() << "(";
    PrintValues(plan, instruction.inputs, stream);
    stream << ")\n";
  }
  stream << "fetch ";
  PrintValues(plan, plan.fetches, stream);
  stream << "\n";
  if (plan.unshared_bytes == 0) return stream.str();
  stream << "max live " << plan.max_live_bytes << " bytes, planned " << plan.planned_bytes
         << ", without reuse " << plan.unshared_bytes << "\n";
  return stream.str();
}

}  // namespace skiff
