// A report is for people who want to know what fills the memory, so each buffer is named as in
// their program: by variable, op, layer and source line. Only roots and workspaces appear; their
// bytes add up to the live bytes of each instruction.
#include "framework/analysis/memory_report.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "framework/analysis/liveness.h"
#include "framework/analysis/stream_waits.h"
#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/ir/op_role.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

PlannedBuffer BlockWrittenBy(const Instruction& instruction) {
  PlannedBuffer block{.op = instruction.Name()};
  const Op& op = *instruction.op;
  if (op.HasAttr(kOpNamescopeAttr)) block.layer = op.Attr<std::string>(kOpNamescopeAttr);
  if (op.site.line > 0) block.site = StrCat(op.site.file, ":", op.site.line);
  return block;
}

// Returns a workspace of the instruction, or what begins with it.
PlannedBuffer WorkspaceOf(const Instruction& instruction, size_t workspace, int64_t bytes,
                          const Life& life) {
  PlannedBuffer block = BlockWrittenBy(instruction);
  block.bytes = bytes;
  const std::vector<int64_t>& offsets = instruction.workspace_offsets;
  if (workspace < offsets.size()) block.offset = offsets[workspace];
  block.first = life.first;
  block.last = life.last;
  return block;
}

}  // namespace

std::string RecomputationText(const Recomputed& recomputed) {
  if (recomputed.instructions == 0) return {};
  return StrCat(recomputed.instructions, " ops are computed again, which saves ",
                MebibytesText(recomputed.saved_bytes), " for about ",
                FormatFixed(100 * recomputed.cost_share, 1), " % of a step");
}

std::string MebibytesText(int64_t bytes) {
  return FormatFixed(static_cast<double>(bytes) / (1 << 20), 2) + " MiB";
}

std::vector<PlannedBuffer> MemoryReport::BlocksAtPeak() const {
  std::vector<PlannedBuffer> live;
  // A life includes both its ends, as in StorageLives.
  const auto instant = static_cast<int32_t>(peak);
  std::ranges::copy_if(blocks, std::back_inserter(live), [&](const PlannedBuffer& block) {
    return block.first <= instant && instant <= block.last && block.bytes > 0;
  });
  // Stable, so that equal plans give equal reports.
  std::ranges::stable_sort(live, std::greater(), &PlannedBuffer::bytes);
  return live;
}

MemoryReport ReportMemory(const Plan& plan) {
  MemoryReport report{.max_live_bytes = plan.max_live_bytes,
                      .planned_bytes = plan.planned_bytes,
                      .unshared_bytes = plan.unshared_bytes,
                      .recomputed = plan.recomputed,
                      .live_bytes = LiveBytes(plan)};
  if (!report.live_bytes.empty()) {
    report.peak = static_cast<size_t>(std::ranges::max_element(report.live_bytes) -
                                      report.live_bytes.begin());
  }
  const ValueTable<Life> lives = StorageLives(plan);
  const std::vector<size_t> ends = StreamEnds(plan);
  const std::optional<StreamWorkspace> shared = WorkspaceOfStream(plan, plan.place);
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    report.op_names.push_back(instruction.Name());
    if (instruction.kind == InstructionKind::kLoop) {
      report.loops.push_back({.instruction = i, .body = ReportMemory(instruction.loop->body)});
    }
    for (const ValueId output : instruction.outputs) {
      if (!output) continue;
      const PlanValue& value = plan[output];
      const Life& life = lives[output];
      // An alias takes no memory of its own; its root is in the report.
      if (value.storage != Storage::kArena || value.alias_of) continue;
      if (value.place != plan.place) continue;
      PlannedBuffer block = BlockWrittenBy(instruction);
      block.variable = value.name;
      block.bytes = StorageBytes(value);
      block.offset = value.offset;
      block.first = life.first;
      block.last = life.last;
      report.blocks.push_back(std::move(block));
    }
    const Life life{.first = static_cast<int32_t>(i), .last = static_cast<int32_t>(ends[i])};
    if (shared && shared->life.first == life.first) {
      const Instruction& largest = plan.instructions[shared->largest];
      report.blocks.push_back(WorkspaceOf(largest, 0, shared->bytes, shared->life));
    }
    if (instruction.place != plan.place) continue;
    if (shared && instruction.stream == PlanStream::kCommunication) continue;
    for (size_t j = 0; j < instruction.workspace_bytes.size(); ++j) {
      report.blocks.push_back(WorkspaceOf(instruction, j, instruction.workspace_bytes[j], life));
    }
  }
  return report;
}

std::string DescribeBlock(const PlannedBuffer& block) {
  std::string text = StrCat(block.variable.empty() ? "workspace" : block.variable, ": ",
                            MebibytesText(block.bytes), " by ", block.op);
  if (!block.layer.empty()) text += StrCat(" in ", block.layer);
  if (!block.site.empty()) text += StrCat(" (", block.site, ")");
  return text;
}

std::string DescribePeak(const MemoryReport& report, size_t blocks) {
  if (report.live_bytes.empty()) return "nothing is computed";
  const std::vector<PlannedBuffer> live = report.BlocksAtPeak();
  std::string text =
      StrCat("most is live at instruction ", report.peak, " (", report.op_names[report.peak], "), ",
             MebibytesText(report.live_bytes[report.peak]), ":");
  for (size_t i = 0; i < std::min(blocks, live.size()); ++i) {
    text += StrCat("\n  ", DescribeBlock(live[i]));
  }
  if (live.size() > blocks) text += StrCat("\n  and ", live.size() - blocks, " smaller ones");
  for (const LoopMemory& loop : report.loops) {
    if (loop.instruction != report.peak) continue;
    text += StrCat("\nin the body of ", report.op_names[report.peak], ", ",
                   DescribePeak(loop.body, blocks));
  }
  return text;
}

}  // namespace skiff
