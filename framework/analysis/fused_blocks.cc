// Places the blocks of all values of a fused instruction. A block of an input or output is a slice
// of the array itself. Intermediate values get storages by a small copy of the plan's own rules: in
// place where the member allows it and the input dies, else a new storage, and storages with
// disjoint lives share scratch memory (PlanArena). Times are indices of members.
#include "framework/analysis/fused_blocks.h"

#include <algorithm>
#include <limits>
#include <map>

#include "framework/analysis/op_aliasing.h"
#include "framework/base/error.h"
#include "memory/arena_planner.h"

namespace skiff {
namespace {

constexpr int kForever = std::numeric_limits<int>::max();

// A thread's memory for one block. Values computed in place use it one after another.
struct BlockStorage {
  ValueId first_value;
  int first = 0;    // the member that writes it first
  int last = 0;     // the last member that reads it
  int output = -1;  // of the instruction, which is stored here; else it is scratch memory
  int64_t scratch_offset = -1;
};

class Placing {
 public:
  Placing(const Plan& plan, const Instruction& fused)
      : plan_(plan), fused_(fused), cut_(CutMeta(plan, fused)) {
    for (size_t k = 0; k < fused.members.size(); ++k) {
      const Instruction& member = fused.members[k];
      for (size_t j = 0; j < member.inputs.size(); ++j) {
        if (member.inputs[j] && member.reads_data[j]) {
          last_read_[member.inputs[j]] = static_cast<int>(k);
        }
      }
    }
  }

  FusedPlacement Run() {
    for (size_t k = 0; k < fused_.members.size(); ++k) {
      for (ValueId output : Member(static_cast<int>(k)).outputs) {
        if (output) PlaceOutput(static_cast<int>(k), output);
      }
    }
    PlanScratch();
    for (const Instruction& member : fused_.members) {
      for (ValueId input : member.inputs) AddValue(input);
      for (ValueId output : member.outputs) AddValue(output);
    }
    for (ValueId input : fused_.inputs) FindInPlace(input);
    return std::move(placement_);
  }

 private:
  const Instruction& Member(int k) const { return fused_.members[static_cast<size_t>(k)]; }

  const TensorMeta& MetaOf(ValueId value) const { return plan_[value].meta; }

  static int IndexIn(const std::vector<ValueId>& values, ValueId value) {
    const auto found = std::ranges::find(values, value);
    return found == values.end() ? -1 : static_cast<int>(found - values.begin());
  }

  // Returns whether member k may write `output` over `input`, which it must read only once.
  bool WorksInPlace(int k, ValueId input, ValueId output) const {
    const Instruction& member = Member(k);
    if (MetaOf(input).dtype != MetaOf(output).dtype) return false;
    // A member that reads the value twice could overwrite what it still reads through the other
    // argument.
    if (std::ranges::count(member.inputs, input) != 1) return false;
    return std::ranges::any_of(InPlacePairsOfOp(plan_, member),
                               [&](const std::pair<int, int>& pair) {
                                 return member.inputs[static_cast<size_t>(pair.first)] == input &&
                                        member.outputs[static_cast<size_t>(pair.second)] == output;
                               });
  }

  void PlaceOutput(int k, ValueId value) {
    const size_t index = StorageFor(k, value);
    storage_of_[value] = index;
    BlockStorage& storage = storages_[index];
    storage.output = IndexIn(fused_.outputs, value);
    const auto read = last_read_.find(value);
    // Even if nothing reads it, it must not share memory with the other outputs of member k.
    storage.last = std::max(read == last_read_.end() ? 0 : read->second, k + 1);
    // The array must hold the output after the last member, so no later member may write there.
    if (storage.output >= 0) storage.last = kForever;
  }

  // Returns the storage of an input that dies at member k, or a new one.
  size_t StorageFor(int k, ValueId output) {
    for (ValueId input : Member(k).inputs) {
      const auto found = storage_of_.find(input);
      if (found == storage_of_.end() || storages_[found->second].last != k) continue;
      if (WorksInPlace(k, input, output)) return found->second;
    }
    storages_.push_back({.first_value = output, .first = k});
    return storages_.size() - 1;
  }

  void PlanScratch() {
    std::vector<ArenaBuffer> buffers;
    for (const BlockStorage& storage : storages_) {
      if (storage.output >= 0) continue;
      buffers.push_back(
          {.bytes = fused_.blocks.elements * SizeOf(MetaOf(storage.first_value).dtype),
           .first_use = storage.first,
           .last_use = storage.last});
    }
    // Scratch memory is per thread and should stay in the cache with the slices, so it is planned
    // as tightly as the arena itself.
    const ArenaPlan arena = PlanArena(buffers);
    placement_.scratch_bytes = arena.planned_bytes;
    auto offset = arena.offsets.begin();
    for (BlockStorage& storage : storages_) {
      if (storage.output < 0) storage.scratch_offset = *offset++;
    }
  }

  void AddValue(ValueId value) {
    const bool known =
        !value || std::ranges::count(placement_.values, value, &FusedValue::value) > 0;
    if (known) return;
    FusedValue added{.value = value, .is_cut = MetaOf(value).shape == cut_.shape};
    const auto found = storage_of_.find(value);
    if (found == storage_of_.end()) {
      added.input = IndexIn(fused_.inputs, value);
    } else {
      added.output = storages_[found->second].output;
      added.scratch_offset = storages_[found->second].scratch_offset;
    }
    placement_.values.push_back(added);
  }

  void FindInPlace(ValueId input) {
    if (MetaOf(input).shape != cut_.shape) return;
    const int last = last_read_.at(input);
    for (const BlockStorage& storage : storages_) {
      if (storage.output < 0) continue;
      // All members finish a block before the next one starts. So it suffices that within a block
      // the last read of the input comes before the first write of the output.
      const bool safe = last < storage.first ||
                        (last == storage.first && WorksInPlace(last, input, storage.first_value));
      if (safe) placement_.in_place.emplace_back(IndexIn(fused_.inputs, input), storage.output);
    }
  }

  const Plan& plan_;
  const Instruction& fused_;
  const TensorMeta& cut_;
  std::map<ValueId, int> last_read_;  // by value, the last member that reads its data
  std::vector<BlockStorage> storages_;
  std::map<ValueId, size_t> storage_of_;  // of what members write
  FusedPlacement placement_;
};

}  // namespace

const TensorMeta& CutMeta(const Plan& plan, const Instruction& fused) {
  const std::vector<ValueId>& outputs = fused.members.front().outputs;
  const auto written =
      std::ranges::find_if(outputs, [](ValueId value) { return static_cast<bool>(value); });
  SKIFF_ENFORCE(written != outputs.end(), kInvalidArgument, fused.Name(),
                ": the first member writes nothing");
  return plan[*written].meta;
}

Shape BlockShape(const Shape& shape, int row_axis, int64_t elements) {
  Shape block = shape;
  // The rows before row_axis become one axis: element-wise kernels don't care, and a bias along the
  // last dims still finds its shape. The first axis, so that kernels can take fewer rows.
  for (int axis = 0; axis < row_axis; ++axis) block[axis] = 1;
  block[0] = elements / block.element_count();
  return block;
}

PrepareContext BlockContext(const Plan& plan, const Instruction& instruction, const Shape& cut,
                            const Shape& block) {
  const auto metas = [&](const std::vector<ValueId>& values) {
    std::vector<TensorMeta> of_block;
    for (ValueId value : values) {
      of_block.push_back(value ? plan[value].meta : TensorMeta{});
      if (!value || of_block.back().shape != cut) continue;
      of_block.back().shape = block;
      of_block.back().layout = Layout::Plain();
    }
    return of_block;
  };
  return PrepareContext(*instruction.op, *instruction.def, metas(instruction.inputs),
                        metas(instruction.outputs), plan.place);
}

FusedPlacement PlaceFused(const Plan& plan, const Instruction& fused) {
  return Placing(plan, fused).Run();
}

}  // namespace skiff
