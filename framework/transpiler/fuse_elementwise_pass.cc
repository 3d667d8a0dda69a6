// Greedy, in program order: each element-wise instruction joins the groups that compute its inputs,
// if all of them may run at its position, else it begins a group. Groups of one are dropped. Then
// the plan is made with all groups and compared with the original by live bytes; groups around an
// instruction that takes more memory than before are given up, until none is left that does.
#include "framework/transpiler/fuse_elementwise_pass.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "framework/analysis/dependencies.h"
#include "framework/analysis/fused_blocks.h"
#include "framework/analysis/plan_uses.h"
#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/transpiler/memory_reuse_pass.h"

namespace skiff {
namespace {

// What instructions of one loop have in common.
struct Loop {
  Shape shape;
  Layout layout;
  int row_axis = 0;  // dims from here on are whole in each block

  // Returns the number of elements of which each block is a multiple: whole rows, and whole
  // vectors. A kernel may round elements that fill no vector differently (GCC contracts a * b + c
  // there, or not). With whole vectors only those at the end of the whole array are such elements,
  // as without blocks.
  int64_t UnitElements() const {
    return std::lcm(shape.element_count(row_axis, shape.rank()),
                    FuseElementwisePass::kVectorElements);
  }
};

// Returns the dim of `shape` with which an input of shape `repeated` begins to agree, if the input
// is broadcast along the leading dims only, or none.
std::optional<int> TrailingAxis(const Op& op, const OpDef& def, const Shape& repeated,
                                const Shape& shape) {
  int leading_ones = 0;
  while (leading_ones < repeated.rank() && repeated[leading_ones] == 1) ++leading_ones;
  const int axis = shape.rank() - (repeated.rank() - leading_ones);
  if (repeated.rank() > shape.rank() || axis < 1) return std::nullopt;
  if (!std::equal(shape.begin() + axis, shape.end(), repeated.begin() + leading_ones)) {
    return std::nullopt;
  }
  const AttrDef* attr = def.FindAttr("axis");
  const Attribute* given = attr == nullptr ? nullptr : EffectiveAttr(op, *attr);
  const int32_t* position = given == nullptr ? nullptr : std::get_if<int32_t>(given);
  const bool at_end =
      position == nullptr || *position == -1 || *position + repeated.rank() == shape.rank();
  return at_end ? std::optional<int>(axis) : std::nullopt;
}

class ElementwiseFusion {
 public:
  ElementwiseFusion(const PassContext& context, int64_t block_elements, Plan* plan)
      : context_(context),
        block_elements_(block_elements),
        plan_(*plan),
        uses_(*plan),
        group_of_(plan->instructions.size(), kNobody),
        loops_(plan->instructions.size()) {}

  // Returns the number of fused instructions made and of the ops in them.
  std::pair<int64_t, int64_t> Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      loops_[i] = LoopOf(plan_.instructions[i]);
      if (loops_[i]) JoinOrStart(i);
    }
    std::erase_if(groups_, [](const Group& group) { return group.members.size() < 2; });
    if (groups_.empty()) return {0, 0};
    const std::vector<int64_t> live = LiveBytesWithReuse(context_, plan_);
    std::pair<Plan, std::vector<size_t>> fused = Fused();
    // Each round drops a group or ends the loop.
    while (DropWhatTakesMemory(live, fused)) fused = Fused();
    plan_ = std::move(fused.first);
    int64_t ops = 0;
    for (const Group& group : groups_) ops += static_cast<int64_t>(group.members.size());
    return {static_cast<int64_t>(groups_.size()), ops};
  }

 private:
  static constexpr size_t kNobody = PlanUses::kNobody;

  struct Group {
    std::vector<size_t> members;  // in order
    Loop loop;
  };

  const TensorMeta& MetaOf(ValueId value) const { return plan_[value].meta; }

  bool MayRunInBlocks(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kOp) return false;
    const OpDef& def = *instruction.def;
    return def.elementwise && !def.random && !def.data_dependent_shape &&
           !MustRunOnce(instruction) && context_.ForcedKernel(def.type).empty() &&
           !ChecksData(instruction);
  }

  std::optional<Loop> LoopOf(const Instruction& instruction) const {
    if (!MayRunInBlocks(instruction)) return std::nullopt;
    const auto written = std::ranges::find_if(
        instruction.outputs, [](ValueId value) { return static_cast<bool>(value); });
    if (written == instruction.outputs.end()) return std::nullopt;
    const TensorMeta& cut = MetaOf(*written);
    Loop loop{.shape = cut.shape, .layout = cut.layout, .row_axis = cut.shape.rank()};
    // In the order of cost: the last test prepares a kernel. Padding of a blocked layout is
    // computed like any element, so the op must keep zeros zero there.
    const bool fits = loop.row_axis > 0 && !cut.is_selected_rows() &&
                      StorageElements(loop.shape, loop.layout) > block_elements_ &&
                      (loop.layout.is_plain() || instruction.def->zero_preserving) &&
                      OutputsFit(instruction, loop) && InputsFit(instruction, &loop) &&
                      loop.UnitElements() <= block_elements_ && HasKernel(instruction, loop);
    return fits ? std::optional<Loop>(loop) : std::nullopt;
  }

  bool OutputsFit(const Instruction& instruction, const Loop& loop) const {
    return std::ranges::all_of(instruction.outputs, [&](ValueId output) {
      return !output ||
             (MetaOf(output).shape == loop.shape && MetaOf(output).layout == loop.layout &&
              plan_[output].storage == Storage::kArena);
    });
  }

  // Returns whether each input is cut like the outputs, or may be seen as a whole by each block.
  // Lowers loop->row_axis to where such an input begins.
  bool InputsFit(const Instruction& instruction, Loop* loop) const {
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      if (!instruction.inputs[i]) continue;
      const TensorMeta& meta = MetaOf(instruction.inputs[i]);
      if (meta.shape == loop->shape) {
        if (instruction.reads_data[i] && meta.layout != loop->layout) return false;
        continue;
      }
      // A broadcast number other than zero would fill the padding of a blocked layout.
      if (!loop->layout.is_plain() || !meta.layout.is_plain()) return false;
      if (meta.shape.element_count() == 1) continue;
      const std::optional<int> axis =
          TrailingAxis(*instruction.op, *instruction.def, meta.shape, loop->shape);
      if (!axis) return false;
      loop->row_axis = std::min(loop->row_axis, *axis);
    }
    return true;
  }

  // Returns whether the kernel of the whole arrays also runs on a block, and needs nothing that a
  // block doesn't have: workspaces and derived forms.
  bool HasKernel(const Instruction& instruction, const Loop& loop) const {
    const KernelDef* kernel = context_.registry.FindKernel(ContextOf(plan_, instruction));
    if (kernel == nullptr) return false;
    const Shape block = BlockShape(loop.shape, loop.row_axis, loop.UnitElements());
    PrepareContext context = BlockContext(plan_, instruction, loop.shape, block);
    kernel = context_.registry.FindKernel(context, kernel->name);
    if (kernel == nullptr) return false;
    kernel->prepare(context);
    return context.workspace_bytes().empty() && context.derived_forms().empty();
  }

  // Puts the instruction into one group with all groups of such a loop that compute its inputs; if
  // that isn't allowed, into the latest one that it may join.
  void JoinOrStart(size_t i) {
    std::set<size_t> makers;  // groups
    for (ValueId input : plan_.instructions[i].inputs) {
      const size_t writer = uses_.WriterOf(input);
      if (writer == kNobody || group_of_[writer] == kNobody) continue;
      const Loop& loop = groups_[group_of_[writer]].loop;
      const bool alike = loop.shape == loops_[i]->shape && loop.layout == loops_[i]->layout;
      if (alike) makers.insert(group_of_[writer]);
    }
    if (makers.size() > 1 && Join(makers, i)) return;
    for (auto maker = makers.rbegin(); maker != makers.rend(); ++maker) {
      if (Join({*maker}, i)) return;
    }
    group_of_[i] = groups_.size();
    groups_.push_back({.members = {i}, .loop = *loops_[i]});
  }

  // Merges these groups and instruction i into one group, which runs at position i. Returns false
  // if the group may not run there.
  bool Join(const std::set<size_t>& parts, size_t i) {
    Group joined{.members = {}, .loop = *loops_[i]};
    for (size_t part : parts) {
      const Group& group = groups_[part];
      joined.loop.row_axis = std::min(joined.loop.row_axis, group.loop.row_axis);
      joined.members.insert(joined.members.end(), group.members.begin(), group.members.end());
    }
    joined.members.push_back(i);
    std::ranges::sort(joined.members);
    if (!MayStandAtItsEnd(joined)) return false;
    for (size_t part : parts) groups_[part].members.clear();
    for (size_t member : joined.members) group_of_[member] = groups_.size();
    groups_.push_back(std::move(joined));
    return true;
  }

  bool MayStandAtItsEnd(const Group& group) const {
    const size_t end = group.members.back();
    return std::ranges::all_of(group.members, [&](size_t member) {
      const Instruction& instruction = plan_.instructions[member];
      for (ValueId output : instruction.outputs) {
        if (!output) continue;
        // A reader outside the group would come before the group.
        for (size_t reader : uses_.ReadersOf(output)) {
          if (reader < end && !std::ranges::binary_search(group.members, reader)) return false;
        }
      }
      return !WritesScopeOf(plan_, instruction.inputs, member + 1, end);
    });
  }

  Instruction FusedFrom(const Group& group) const {
    Instruction fused = plan_.instructions[group.members.back()];
    fused.kind = InstructionKind::kFused;
    fused.inputs.clear();
    fused.outputs.clear();
    for (size_t member : group.members) {
      const Instruction& instruction = plan_.instructions[member];
      for (size_t j = 0; j < instruction.inputs.size(); ++j) {
        if (instruction.inputs[j] && instruction.reads_data[j]) {
          AddInput(group, instruction.inputs[j], &fused);
        }
      }
      for (ValueId output : instruction.outputs) {
        if (output && IsReadOutside(group, output)) fused.outputs.push_back(output);
      }
      fused.members.push_back(instruction);
    }
    fused.reads_data.assign(fused.inputs.size(), true);
    SetBlocks(group.loop, &fused);
    return fused;
  }

  void AddInput(const Group& group, ValueId value, Instruction* fused) const {
    const size_t writer = uses_.WriterOf(value);
    const bool inside = writer != kNobody && std::ranges::binary_search(group.members, writer);
    if (!inside && std::ranges::count(fused->inputs, value) == 0) fused->inputs.push_back(value);
  }

  bool IsReadOutside(const Group& group, ValueId value) const {
    return std::ranges::any_of(uses_.ReadersOf(value), [&](size_t reader) {
      return !std::ranges::binary_search(group.members, reader);
    });
  }

  void SetBlocks(const Loop& loop, Instruction* fused) const {
    const int64_t unit = loop.UnitElements();
    BlockPartition& blocks = fused->blocks;
    blocks.elements = block_elements_ / unit * unit;
    blocks.row_axis = loop.row_axis;
    const int64_t count = StorageElements(loop.shape, loop.layout) / blocks.elements;
    blocks.part_count = std::clamp<int64_t>(count, 1, omp_get_max_threads());
    const int64_t scratch = PlaceFused(plan_, *fused).scratch_bytes;
    if (scratch > 0) fused->workspace_bytes = {scratch * blocks.part_count};
  }

  // Returns the plan with its groups fused, and the former position of each of its instructions.
  std::pair<Plan, std::vector<size_t>> Fused() const {
    std::vector<const Group*> ends(plan_.instructions.size(), nullptr);
    std::vector<bool> moves(plan_.instructions.size(), false);
    for (const Group& group : groups_) {
      ends[group.members.back()] = &group;
      for (size_t member : group.members) moves[member] = true;
    }
    std::pair<Plan, std::vector<size_t>> fused(plan_, {});
    fused.first.instructions.clear();
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (moves[i] && ends[i] == nullptr) continue;
      fused.first.instructions.push_back(ends[i] != nullptr ? FusedFrom(*ends[i])
                                                            : plan_.instructions[i]);
      fused.second.push_back(i);
    }
    return fused;
  }

  // Gives up the groups around each instruction at which more is live in the fused plan than was,
  // since they might raise the peak: a group keeps the inputs of its ops until the last of them has
  // run, and everything that they touch is live at once. A fused instruction itself may come up to
  // the peak, since its workspace is known; the workspaces of other instructions aren't known yet
  // and come on top of the live bytes.
  bool DropWhatTakesMemory(const std::vector<int64_t>& live,
                           const std::pair<Plan, std::vector<size_t>>& fused) {
    const int64_t peak = std::ranges::max(live);
    const std::vector<int64_t> live_now = LiveBytesWithReuse(context_, fused.first);
    std::vector<size_t> grown;  // positions
    for (size_t i = 0; i < live_now.size(); ++i) {
      const bool is_fused = fused.first.instructions[i].kind == InstructionKind::kFused;
      const size_t position = fused.second[i];
      if (live_now[i] > (is_fused ? peak : live[position])) grown.push_back(position);
    }
    return std::erase_if(groups_, [&](const Group& group) {
             return std::ranges::any_of(grown, [&](size_t position) {
               return group.members.front() <= position && position <= group.members.back();
             });
           }) > 0;
  }

  const PassContext& context_;
  const int64_t block_elements_;
  Plan& plan_;
  PlanUses uses_;
  std::vector<size_t> group_of_;  // by instruction
  std::vector<std::optional<Loop>> loops_;
  std::vector<Group> groups_;
};

}  // namespace

PassReport FuseElementwisePass::Apply(const PassContext& context, Plan* plan) const {
  const auto [fused, ops] = plan->place.is_cpu()
                                ? ElementwiseFusion(context, block_elements_, plan).Run()
                                : std::pair<int64_t, int64_t>();
  return {.pass = {},
          .changes = fused,
          .summary = StrCat(ops, " element-wise ops in ", fused, " loops")};
}

}  // namespace skiff
