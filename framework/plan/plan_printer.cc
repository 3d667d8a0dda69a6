#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/ir/text.h"
#include "framework/ir/text_escape.h"
#include "framework/plan/loop.h"
#include "framework/plan/loop_names.h"
#include "framework/plan/plan_text.h"

namespace skiff {
namespace {

std::string ReferenceText(const Plan& plan, ValueId id) {
  return id ? StrCat(NameText(plan[id].name), "#", id.index()) : "none";
}

std::string PlaceText(Place place) { return StrCat(" place=", NameText(PlaceName(place))); }

std::string StorageText(const Plan& plan, const PlanValue& value) {
  if (value.storage == Storage::kScope) return " @scope";
  if (value.storage == Storage::kFeed) return " @feed";
  if (value.storage == Storage::kKernelOwned) return " @made";
  if (value.storage == Storage::kStack) return " @stack";
  if (value.alias_of) return " @" + ReferenceText(plan, value.alias_of);
  return value.offset >= 0 ? StrCat(" @", value.offset) : "";
}

std::string DeclarationText(const Plan& plan, ValueId id) {
  const PlanValue& value = plan[id];
  const Layout layout = value.meta.layout;
  std::string text = StrCat(ReferenceText(plan, id), " ", value.meta.dtype, " ", value.meta.shape);
  if (value.meta.lod_level != 0) text += StrCat(" lod=", value.meta.lod_level);
  if (value.meta.persistable) text += " persistable";
  if (layout.is_blocked()) text += StrCat(" blocked=", layout.channel_block);
  if (layout.selected_rows) text += StrCat(" selected_rows=", layout.height);
  if (value.meta.is_array) text += " array";
  if (value.is_exclusive) text += " exclusive";
  if (value.is_checkpoint) text += " checkpoint";
  if (value.place != plan.place) text += PlaceText(value.place);
  return text + StorageText(plan, value);
}

class PlanPrinter {
 public:
  explicit PlanPrinter(const Plan& plan, std::string indent = "")
      : plan_(plan),
        indent_(std::move(indent)),
        mentioned_(plan.values.size()),
        declared_(plan.values.size()) {}

  std::string Print() {
    const std::string inside = indent_ + "  ";
    const std::string instructions = InstructionsText(plan_.instructions, inside);
    std::string tail = StrCat(inside, "feed ", ValuesText(plan_.feeds), "\n", inside, "fetch ",
                              ValuesText(plan_.fetches), "\n");
    for (const ContiguousValues& list : plan_.contiguous) {
      tail += StrCat(inside, "contiguous alignment=", list.alignment_bytes, " ",
                     ValuesText(list.values), "\n");
    }
    if (plan_.unshared_bytes != 0) {
      tail += StrCat(inside, "bytes max_live=", plan_.max_live_bytes,
                     " planned=", plan_.planned_bytes, " unshared=", plan_.unshared_bytes);
      if (plan_.host_planned_bytes != 0) tail += StrCat(" host=", plan_.host_planned_bytes);
      tail += "\n";
    }
    return StrCat("plan ", NameText(PlaceName(plan_.place)),
                  " reuse=", ReusePolicyName(plan_.reuse), plan_.has_guards ? " guards" : "",
                  " {\n", UnwrittenText(), instructions, tail, indent_, "}\n");
  }

 private:
  // Returns a line for each value that is mentioned and that no instruction declares.
  std::string UnwrittenText() {
    for (ValueId id : plan_.ids()) {
      for (ValueId value = id; mentioned_[id] && value; value = plan_[value].alias_of) {
        mentioned_[value] = true;
      }
    }
    std::string text;
    for (ValueId id : plan_.ids()) {
      if (mentioned_[id] && !declared_[id]) {
        text += StrCat(indent_, "  value ", DeclarationText(plan_, id), "\n");
      }
    }
    return text;
  }

  std::string ValueText(ValueId id) {
    if (id) mentioned_[id] = true;
    return ReferenceText(plan_, id);
  }

  // As ValueText, with the declaration where the value is written for the first time.
  std::string WrittenText(ValueId id) {
    if (!id || declared_[id]) return ValueText(id);
    mentioned_[id] = declared_[id] = true;
    return DeclarationText(plan_, id);
  }

  template <typename Text>
  static std::string ListText(const std::vector<ValueId>& values, Text text) {
    std::vector<std::string> texts;
    for (ValueId value : values) texts.push_back(text(value));
    return StrCat("[", Join(texts, ", "), "]");
  }
  std::string ValuesText(const std::vector<ValueId>& values) {
    return ListText(values, [this](ValueId id) { return ValueText(id); });
  }
  std::string WrittenTexts(const std::vector<ValueId>& values) {
    return ListText(values, [this](ValueId id) { return WrittenText(id); });
  }

  // Returns the slots that have arguments, in the order of the definition, and so of `values`.
  template <typename Texts>
  static std::string SlotsText(const std::vector<SlotDef>& defs, const Slots& slots,
                               const std::vector<ValueId>& values, Texts texts) {
    std::vector<std::string> parts;
    auto next = values.begin();
    for (const SlotDef& def : defs) {
      const auto found = std::ranges::find(slots, def.name, &SlotArguments::slot);
      if (found == slots.end() || found->arguments.empty()) continue;
      const auto end = next + static_cast<std::ptrdiff_t>(found->arguments.size());
      parts.push_back(StrCat(NameText(def.name), ": ", texts(std::vector<ValueId>(next, end))));
      next = end;
    }
    return Join(parts, ", ");
  }

  std::string OpText(const Instruction& instruction) {
    const Op& op = *instruction.op;
    const OpDef& def = *instruction.def;
    const std::string outputs =
        SlotsText(def.outputs, op.outputs, instruction.outputs,
                  [this](const auto& values) { return WrittenTexts(values); });
    const std::string inputs = SlotsText(def.inputs, op.inputs, instruction.inputs,
                                         [this](const auto& values) { return ValuesText(values); });
    std::string text = StrCat("{", outputs, "} = ", NameText(op.type), "(", inputs, ")");
    if (op.is_target) text += " target";
    if (!op.attrs.empty()) text += " " + PrintAttributes(op.attrs);
    return text;
  }

  std::string InstructionsText(const std::vector<Instruction>& instructions,
                               const std::string& indent) {
    std::string text;
    for (const Instruction& instruction : instructions) {
      text += indent + InstructionText(instruction, indent) + "\n";
    }
    return text;
  }

  std::string InstructionText(const Instruction& instruction, const std::string& indent) {
    switch (instruction.kind) {
      case InstructionKind::kOp:
        return OpText(instruction) + MarksText(instruction);
      case InstructionKind::kCopy:
        return StrCat("copy ", WrittenTexts(instruction.outputs), " from ",
                      ValuesText(instruction.inputs), MarksText(instruction));
      case InstructionKind::kFused:
        return FusedText(instruction, indent);
      case InstructionKind::kLoop:
        return LoopText(instruction, indent);
    }
    return {};
  }

  std::string FusedText(const Instruction& instruction, const std::string& indent) {
    const std::string outputs = WrittenTexts(instruction.outputs);
    const BlockPartition& blocks = instruction.blocks;
    std::string text = StrCat("fused ", outputs, " from ", ValuesText(instruction.inputs));
    if (blocks.elements != 0) text += StrCat(" elements=", blocks.elements);
    if (blocks.row_axis != 0) text += StrCat(" row_axis=", blocks.row_axis);
    if (blocks.part_count != 1) text += StrCat(" parts=", blocks.part_count);
    text += MarksText(instruction) + " {\n";
    // Members count their positions on their own.
    const size_t next = std::exchange(next_position_, 0);
    text += InstructionsText(instruction.members, indent + "  ");
    next_position_ = next;
    return text + indent + "}";
  }

  std::string LoopText(const Instruction& instruction, const std::string& indent) {
    const Loop& loop = *instruction.loop;
    const std::string inside = indent + "  ";
    const std::string outputs = WrittenTexts(instruction.outputs);
    std::string text = StrCat("loop ", NameText(instruction.op->type), " ", outputs, " from ",
                              ValuesText(instruction.inputs), MarksText(instruction), " {\n");
    std::vector<std::string> unread;
    for (size_t i = 0; i < instruction.reads_data.size(); ++i) {
      if (!instruction.reads_data[i]) unread.push_back(StrCat(i));
    }
    if (!unread.empty()) text += StrCat(inside, "unread [", Join(unread, ", "), "]\n");
    text += inside + "runs" + SettingText("iterations", loop.iterations) +
            SettingText("condition_feed", loop.condition_feed) +
            SettingText("condition_input", loop.condition_input) +
            SettingText("count_input", loop.count_input) +
            SettingText("count_output", loop.count_output) + StrCat(" max=", loop.max_iterations) +
            (loop.is_gradient ? " gradient" : "") + (loop.descending ? " descending" : "") + "\n";
    for (const LoopFeed& feed : loop.feeds) {
      text += StrCat(inside, "in ", NameOf(feed.kind), " ", feed.value.index(),
                     SettingText("input", feed.input), SettingText("stack", feed.stack), "\n");
    }
    for (const LoopFetch& fetch : loop.fetches) {
      text += StrCat(inside, "out ", NameOf(fetch.kind), " ", fetch.value.index(),
                     SettingText("output", fetch.output), SettingText("input", fetch.input),
                     SettingText("feed", fetch.feed), SettingText("like", fetch.like), "\n");
    }
    for (const LoopStash& stash : loop.stashes) {
      text += StrCat(inside, "stack ", stash.value.index(), SettingText("index", stash.index),
                     stash.shift != 0 ? " next" : "", "\n");
    }
    for (const LoopScopeValue& variable : loop.scope_values) {
      text += StrCat(inside, "variable ", variable.value.index(),
                     variable.index < 0
                         ? " own"
                         : SettingText(variable.is_output ? "output" : "input", variable.index),
                     "\n");
    }
    return text + inside + PlanPrinter(loop.body, inside).Print() + indent + "}";
  }

  // Returns " name=N", or nothing for -1.
  static std::string SettingText(std::string_view name, int64_t value) {
    return value < 0 ? "" : StrCat(" ", name, "=", value);
  }

  std::string MarksText(const Instruction& instruction) {
    std::string text = instruction.sets_rows ? " sets_rows" : "";
    if (instruction.batching != Batching::kNone) {
      text += instruction.batching == Batching::kBefore ? " before" : " after";
    }
    text += StreamText(instruction);
    if (instruction.place != plan_.place) text += PlaceText(instruction.place);
    text += WorkspacesText(instruction);
    if (instruction.block != 0) text += StrCat(" block=", instruction.block);
    if (instruction.position != next_position_) text += StrCat(" position=", instruction.position);
    const auto position = static_cast<int64_t>(instruction.position);
    const bool has_op =
        instruction.kind == InstructionKind::kOp || instruction.kind == InstructionKind::kLoop;
    if (has_op && instruction.op->id != position) text += StrCat(" id=", instruction.op->id);
    next_position_ = instruction.position + 1;
    return text;
  }

  std::string StreamText(const Instruction& instruction) {
    if (instruction.stream == PlanStream::kCommunication) {
      return StrCat(" @comm(c", next_collective_++, ")");
    }
    return instruction.waits_for < 0 ? "" : StrCat(" wait(c", instruction.waits_for, ")");
  }

  static std::string WorkspacesText(const Instruction& instruction) {
    if (instruction.workspace_bytes.empty()) return {};
    std::vector<std::string> texts;
    for (size_t i = 0; i < instruction.workspace_bytes.size(); ++i) {
      const bool planned = i < instruction.workspace_offsets.size();
      texts.push_back(StrCat(instruction.workspace_bytes[i],
                             planned ? StrCat(" @", instruction.workspace_offsets[i]) : ""));
    }
    return StrCat(" workspaces=[", Join(texts, ", "), "]");
  }

  const Plan& plan_;
  const std::string indent_;
  ValueTable<bool> mentioned_;
  ValueTable<bool> declared_;
  size_t next_position_ = 0;
  int32_t next_collective_ = 0;  // in the communication stream
};

}  // namespace

std::string PrintPlan(const Plan& plan) { return PlanPrinter(plan).Print(); }

}  // namespace skiff
