// Compiles and binds the same program once per policy and reads the figures from the plans: max
// live bytes is the lower bound, planned bytes the arena, reserved bytes what the allocator took
// for it. No step runs.
#include "tools/skiff/memory.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/analysis/memory_report.h"
#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/training/optimization.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "tools/model_workload/model_workload.h"
#include "tools/pass_flags/pass_flags.h"
#include "tools/skiff/memory_timeline.h"

DEFINE_string(model, "resnet20",
              "mlp, lenet, resnet18, 20, 32, 34, 44, 50, 56, 101, 110, vgg11, 13, 16, 19, "
              "ernie_tiny, ernie_mini, ernie_mini_dropout, ernie_20_layers, char_lstm or char_gru");
DEFINE_int64(batch_size, 64, "images per step");
DEFINE_bool(inference, false, "plan the forward pass with the loss instead of a training step");
DEFINE_string(
    precision, "float32",
    "what products, convolutions and activations compute in: float32, bfloat16, or float16 "
    "with loss scaling");
DEFINE_int32(top, 10, "how many of the largest tensors at the peak to list");
DEFINE_string(svg, "",
              "file for a drawing of the arena, as planned by the last policy in the table; empty: "
              "none");
DECLARE_bool(json);

namespace skiff {
namespace {

constexpr double kMegabyte = 1 << 20;

struct PolicyFigures {
  ReusePolicy policy;
  PlanStatistics statistics;
  // What binding the program has reserved: arena, derived forms, copies.
  int64_t reserved_bytes = 0;
  MemoryReport report;

  double ratio() const {
    return statistics.max_live_bytes == 0 ? 1.0
                                          : static_cast<double>(statistics.planned_bytes) /
                                                static_cast<double>(statistics.max_live_bytes);
  }
};

std::vector<ReusePolicy> Policies() {
  if (FLAGS_policy != "all") return {ParseReusePolicy(FLAGS_policy)};
  std::vector<ReusePolicy> policies(std::begin(kReusePolicies), std::end(kReusePolicies));
  // Without reuse, recomputation saves nothing, so the policy `none` is left out if any is asked
  // for.
  const Recompute recompute = ParseRecompute(FLAGS_recompute);
  if (recompute != Recompute::kNothing && recompute != Recompute::kAlmostFree) {
    policies.erase(policies.begin());
  }
  return policies;
}

// Plans the program by a policy; runs nothing.
PolicyFigures Measure(ReusePolicy policy, const ModelWorkload& workload, Executor* executor) {
  CompileOptions options{.memory = MemoryFromFlags(policy)};
  options.passes = PassesFromFlags();
  CompiledProgram compiled = executor->Compile(*workload.program, options);
  Allocator& allocator = AllocatorOf(executor->place());
  // Otherwise the arena of the last policy, which is cached, would be reused without being counted.
  allocator.ReleaseCached();
  const int64_t before = allocator.statistics().reserved_bytes;
  const BoundProgram bound = compiled.Bind(workload.batches.front(), {workload.fetch});
  return {.policy = policy,
          .statistics = bound.statistics(),
          .reserved_bytes = allocator.statistics().reserved_bytes - before,
          .report = ReportMemory(bound.plan())};
}

// Returns the share of the arena without any reuse that the policy saves.
double Saving(const PolicyFigures& figures) {
  const auto without = static_cast<double>(figures.statistics.unshared_bytes);
  const auto planned = static_cast<double>(figures.statistics.planned_bytes);
  // The policy `none` can take a little more than unshared_bytes, since it rounds offsets up to the
  // alignment.
  return without == 0 ? 0 : std::max(0.0, 1 - planned / without);
}

void PrintTable(const std::vector<PolicyFigures>& all) {
  std::printf(
      "%s, batch %lld, %s, recompute %s, %s: %lld instructions, %.1f MiB of parameters and "
      "states\n",
      FLAGS_model.c_str(), static_cast<long long>(FLAGS_batch_size),
      FLAGS_inference ? "inference" : "training", FLAGS_recompute.c_str(),
      std::string(InstructionSetName(UsedInstructionSet())).c_str(),
      static_cast<long long>(all[0].statistics.instructions),
      static_cast<double>(all[0].statistics.persistable_bytes) / kMegabyte);
  std::printf("%-9s %13s %12s %13s %9s %8s\n", "policy", "max live MiB", "planned MiB",
              "reserved MiB", "of bound", "saving");
  for (const PolicyFigures& figures : all) {
    std::printf("%-9s %13.2f %12.2f %13.2f %9.4f %7.1f%%\n",
                std::string(ReusePolicyName(figures.policy)).c_str(),
                static_cast<double>(figures.statistics.max_live_bytes) / kMegabyte,
                static_cast<double>(figures.statistics.planned_bytes) / kMegabyte,
                static_cast<double>(figures.reserved_bytes) / kMegabyte, figures.ratio(),
                100 * Saving(figures));
  }
  const std::string again = RecomputationText(all.back().statistics.recomputed);
  if (!again.empty())
    std::printf("policy %s: %s\n", ReusePolicyName(all.back().policy).data(), again.c_str());
}

std::vector<PlannedBuffer> TopBlocks(const MemoryReport& report) {
  std::vector<PlannedBuffer> blocks = report.BlocksAtPeak();
  if (blocks.size() > static_cast<size_t>(FLAGS_top)) blocks.resize(static_cast<size_t>(FLAGS_top));
  return blocks;
}

void PrintTop(const PolicyFigures& figures) {
  const MemoryReport& report = figures.report;
  if (FLAGS_top == 0 || report.live_bytes.empty()) return;
  std::printf("\nlargest of the %zu live at the peak, instruction %zu (%s), policy %s:\n",
              report.BlocksAtPeak().size(), report.peak, report.op_names[report.peak].c_str(),
              std::string(ReusePolicyName(figures.policy)).c_str());
  std::printf("%10s  %-11s %-28s %s\n", "MiB", "lives", "op", "variable");
  for (const PlannedBuffer& block : TopBlocks(report)) {
    const std::string lives = StrCat(block.first, "-", block.last);
    std::printf("%10.2f  %-11s %-28s %s%s%s\n", static_cast<double>(block.bytes) / kMegabyte,
                lives.c_str(), block.op.c_str(),
                block.variable.empty() ? "(workspace)" : block.variable.c_str(),
                block.layer.empty() ? "" : " in ", block.layer.c_str());
  }
}

// Prints what fills the bodies of loops and branches, each planned once for all its iterations.
void PrintLoops(const MemoryReport& report, const std::string& indent) {
  for (const LoopMemory& loop : report.loops) {
    const MemoryReport& body = loop.body;
    std::printf(
        "%sbody of instruction %zu (%s): %.2f MiB planned, %.2f live at most, %.2f unshared\n",
        indent.c_str(), loop.instruction, report.op_names[loop.instruction].c_str(),
        static_cast<double>(body.planned_bytes) / kMegabyte,
        static_cast<double>(body.max_live_bytes) / kMegabyte,
        static_cast<double>(body.unshared_bytes) / kMegabyte);
    for (const PlannedBuffer& block : TopBlocks(body)) {
      std::printf("%s  %s\n", indent.c_str(), DescribeBlock(block).c_str());
    }
    PrintLoops(body, indent + "  ");
  }
}

nlohmann::ordered_json RecomputedJson(const Recomputed& recomputed) {
  return {{"instructions", recomputed.instructions},
          {"saved_bytes", recomputed.saved_bytes},
          {"cost_share", recomputed.cost_share}};
}

nlohmann::ordered_json LoopsJson(const MemoryReport& report) {
  nlohmann::ordered_json loops = nlohmann::ordered_json::array();
  for (const LoopMemory& loop : report.loops) {
    loops.push_back({{"instruction", loop.instruction},
                     {"op", report.op_names[loop.instruction]},
                     {"max_live_bytes", loop.body.max_live_bytes},
                     {"planned_bytes", loop.body.planned_bytes},
                     {"unshared_bytes", loop.body.unshared_bytes},
                     {"live_bytes", loop.body.live_bytes},
                     {"loops", LoopsJson(loop.body)}});
  }
  return loops;
}

nlohmann::ordered_json Json(const std::vector<PolicyFigures>& all) {
  nlohmann::ordered_json policies = nlohmann::ordered_json::array();
  for (const PolicyFigures& figures : all) {
    nlohmann::ordered_json top = nlohmann::ordered_json::array();
    for (const PlannedBuffer& block : TopBlocks(figures.report)) {
      top.push_back({{"variable", block.variable},
                     {"bytes", block.bytes},
                     {"op", block.op},
                     {"layer", block.layer},
                     {"site", block.site},
                     {"first", block.first},
                     {"last", block.last}});
    }
    policies.push_back({{"policy", ReusePolicyName(figures.policy)},
                        {"max_live_bytes", figures.statistics.max_live_bytes},
                        {"planned_bytes", figures.statistics.planned_bytes},
                        {"reserved_bytes", figures.reserved_bytes},
                        {"unshared_bytes", figures.statistics.unshared_bytes},
                        {"recomputed", RecomputedJson(figures.statistics.recomputed)},
                        {"ratio", figures.ratio()},
                        {"saving", Saving(figures)},
                        {"live_bytes", figures.report.live_bytes},
                        {"loops", LoopsJson(figures.report)},
                        {"top", top}});
  }
  return {{"model", FLAGS_model},
          {"batch_size", FLAGS_batch_size},
          {"inference", FLAGS_inference},
          {"precision", FLAGS_precision},
          {"recompute", FLAGS_recompute},
          {"instruction_set", InstructionSetName(UsedInstructionSet())},
          {"instructions", all[0].statistics.instructions},
          {"persistable_bytes", all[0].statistics.persistable_bytes},
          {"policies", policies}};
}

int Run() {
  SKIFF_ENFORCE(FLAGS_batch_size > 0 && FLAGS_top >= 0, kInvalidArgument,
                "--batch_size=", FLAGS_batch_size, " --top=", FLAGS_top,
                ": expected a positive batch and at least 0 tensors");
  Executor executor(Place::Cpu());
  const ModelWorkload workload = MakeModelWorkload(
      FLAGS_model,
      {.batch_size = FLAGS_batch_size,
       .trains = !FLAGS_inference,
       .precision = {.dtype = training::PrecisionFromName("precision", FLAGS_precision)}},
      &executor);
  std::vector<PolicyFigures> all;
  for (const ReusePolicy policy : Policies()) all.push_back(Measure(policy, workload, &executor));
  if (!FLAGS_svg.empty()) {
    const std::string title =
        StrCat(FLAGS_model, ", batch ", FLAGS_batch_size, ", policy ",
               ReusePolicyName(all.back().policy), ", recompute ", FLAGS_recompute);
    AtomicWriteFile(FLAGS_svg, RenderMemoryTimeline(title, all.back().report));
  }
  if (FLAGS_json) {
    std::printf("%s\n", Json(all).dump().c_str());
    return 0;
  }
  PrintTable(all);
  PrintTop(all.back());
  if (!all.back().report.loops.empty()) std::printf("\n");
  PrintLoops(all.back().report, "");
  return 0;
}

}  // namespace

Subcommand MemorySubcommand() {
  return {.name = "memory",
          .summary = "the arena of a model's step by policy, and the tensors that it holds",
          .command = {
              .usage = "skiff memory --model=resnet50 --batch_size=8 [flags]",
              .summary = "Plans a step of a model with each reuse policy and prints the bytes "
                         "that must live at\nonce, planned and reserved, and the largest tensors "
                         "at the peak with op and layer.\nSKIFF_MAX_ISA=avx2 in the environment "
                         "plans the layouts of a processor without AVX-512.",
              .run = Run,
              .flag_defaults = {{"policy", "all"}},
              .flags = {"model", "batch_size", "inference", "precision", "policy", "recompute",
                        "checkpoints", "budget_bytes", "passes", "top", "svg", "json"}}};
}

}  // namespace skiff
