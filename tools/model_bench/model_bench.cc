// Times training steps of a model, or inference, and says where time and memory go.
#include <gflags/gflags.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/command_line/argument_text.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "memory/allocator.h"
#include "skiff/skiff.h"
#include "tools/benchmark/process_memory.h"
#include "tools/benchmark/run_times.h"
#include "tools/model_bench/flop_count.h"
#include "tools/model_bench/fma_peak.h"
#include "tools/model_workload/model_workload.h"
#include "tools/pass_flags/pass_flags.h"

DEFINE_string(model, "resnet20",
              "mlp, lenet (1x28x28), resnet18, resnet20, resnet32, resnet44, resnet56, resnet110, "
              "vgg11, vgg13, vgg16, vgg19 (3x32x32), resnet34, resnet50, resnet101 (3x224x224) or "
              "transformer (334 parameter tensors, 32 words a sequence)");
DEFINE_string(
    optimizer, "momentum",
    "what trains: momentum with L2 decay, or adam with L2 decay and clipping by the global "
    "norm");
DEFINE_string(place, "cpu", "where to run; times and memory are those of the CPU, so only cpu");
DEFINE_bool(inference, false,
            "time the forward pass as in evaluation, with the loss, instead of training steps");
DEFINE_string(
    saved_model, "",
    "folder of a model saved for inference, such as model/ in the output of a training: time "
    "it instead of --model; empty: none");
DEFINE_int32(batch_size, 64, "images a step");
DEFINE_int32(threads, 0, "threads inside ops; 0: as OMP_NUM_THREADS says");
DEFINE_int32(steps, 10, "timed steps, after 3 that are not");
DEFINE_string(kernels, "",
              "kernels to force, op=kernel with commas between them, such as "
              "conv2d=onednn,conv2d_grad=onednn");
DEFINE_string(
    tune_kernels, "",
    "file that remembers which kernels are fastest on this machine, made if it "
    "isn't there; kernels that it doesn't know are timed first, a fraction of a second each (which "
    "the peaks of memory show), and what differs from the rule is printed; --kernels wins; empty: "
    "kernels by rule");
DEFINE_int64(memory_limit_bytes, 0,
             "most that the allocator may take from the system; 0: no limit");
DEFINE_string(json, "", "file to write the figures to; empty: none");
DEFINE_bool(split, true, "print the step's time by op");
DEFINE_int32(seed, 1, "of initial values and generated images");

namespace skiff {
namespace {

CompileOptions OptionsFromFlags() {
  CompileOptions options;
  for (const std::string& forced : SplitNames(FLAGS_kernels)) {
    const size_t mark = forced.find('=');
    SKIFF_ENFORCE(mark != std::string::npos, kInvalidArgument, "--kernels: found \"", forced,
                  "\", expected op=kernel");
    options.kernels[forced.substr(0, mark)] = forced.substr(mark + 1);
  }
  options.passes = PassesFromFlags();
  options.memory = MemoryFromFlags();
  if (!FLAGS_tune_kernels.empty()) {
    options.tuner = std::make_shared<KernelTuner>(
        DefaultOpRegistry(),
        KernelTunerOptions{.cache_file = FLAGS_tune_kernels,
                           .warn =
                               [](const std::string& message) {
                                 std::fprintf(stderr, "warning: %s\n", message.c_str());
                               },
                           .log =
                               [](const std::string& line) {
                                 std::fprintf(stderr, "tuning: %s\n", line.c_str());
                               }});
  }
  return options;
}

void PrintTuning(const KernelTuner& tuner) {
  std::printf("%s\n", tuner.Summary().c_str());
  for (const auto& [key, decision] : tuner.decisions()) {
    const KernelChoice& choice = decision.choice;
    if (choice.kernel == decision.rule) continue;
    const auto rule = choice.seconds.find(decision.rule);
    std::printf("%s: %s %.3f ms", decision.op.c_str(), choice.kernel.c_str(),
                choice.seconds.at(choice.kernel) * 1e3);
    if (rule != choice.seconds.end()) {
      std::printf(" instead of %s %.3f ms", rule->first.c_str(), rule->second * 1e3);
    }
    std::printf("\n");
  }
}

void PrintSplit(BoundProgram* bound) {
  std::map<std::string, std::pair<double, int>> by_type;
  double total = 0;
  for (const InstructionTime& time : bound->TimedStep()) {
    auto& [seconds, count] =
        by_type[time.kernel.empty() ? time.type : time.type + " " + time.kernel];
    seconds += time.seconds;
    ++count;
    total += time.seconds;
  }
  std::vector<std::pair<std::string, std::pair<double, int>>> rows(by_type.begin(), by_type.end());
  std::ranges::sort(rows,
                    [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  std::printf("%10s %7s %6s  op and kernel\n", "ms", "share", "count");
  for (const auto& [name, row] : rows) {
    std::printf("%10.3f %6.1f%% %6d  %s\n", row.first * 1e3, 100 * row.first / total, row.second,
                name.c_str());
  }
}

int Main() {
  SKIFF_ENFORCE(FLAGS_batch_size > 0 && FLAGS_steps > 0 && FLAGS_threads >= 0, kInvalidArgument,
                "--batch_size=", FLAGS_batch_size, " --steps=", FLAGS_steps,
                " --threads=", FLAGS_threads, ": expected positive numbers");
  SKIFF_ENFORCE(FLAGS_saved_model.empty() ||
                    (gflags::GetCommandLineFlagInfoOrDie("model").is_default && !FLAGS_inference),
                kInvalidArgument, "--saved_model=", FLAGS_saved_model,
                " with --model=", FLAGS_model, FLAGS_inference ? " --inference" : "",
                ": expected it alone; a saved model is timed in inference");
  const Place place = Place::FromName(FLAGS_place);
  SKIFF_ENFORCE(
      place.is_cpu(), kUnimplemented, "--place=", FLAGS_place,
      ": what is measured here are steps, memory and the FMA peak of the CPU, expected cpu");
  if (FLAGS_threads > 0) omp_set_num_threads(FLAGS_threads);
  const double peak_flops = MeasureFmaPeak();
  const double rss_before_mb = RssMegabytes();

  AllocatorOf(place).SetLimit(FLAGS_memory_limit_bytes);
  Executor executor(place);
  const ModelWorkloadOptions workload_options{.batch_size = FLAGS_batch_size,
                                              .seed = static_cast<uint64_t>(FLAGS_seed),
                                              .trains = !FLAGS_inference,
                                              .optimizer = FLAGS_optimizer};
  const ModelWorkload workload =
      FLAGS_saved_model.empty() ? MakeModelWorkload(FLAGS_model, workload_options, &executor)
                                : LoadModelWorkload(FLAGS_saved_model, workload_options, &executor);
  const CompileOptions options = OptionsFromFlags();
  CompiledProgram compiled = executor.Compile(*workload.program, options);
  BoundProgram bound = compiled.Bind(workload.feeds, {workload.fetch});

  bound.Step();
  // The loss, or the first of a saved model's results.
  const float first_value = bound.fetch(0).data<float>()[0];
  for (int i = 0; i < 2; ++i) bound.Step();
  std::vector<double> ms;
  for (int32_t i = 0; i < FLAGS_steps; ++i) ms.push_back(SecondsOf([&] { bound.Step(); }) * 1e3);
  const float last_value = bound.fetch(0).data<float>()[0];
  const Percentiles times = PercentilesOf(ms);
  const double step_ms = times.median;
  const PlanStatistics statistics = bound.statistics();
  const double flop = CountFlop(bound.plan());
  const double share = flop / (step_ms * 1e-3) / peak_flops;
  const double rate = FLAGS_batch_size / (step_ms * 1e-3);
  // Parameters, optimizer states, derived forms, the arena, feeds and fetches.
  const AllocatorStatistics reserved = AllocatorOf(place).statistics();
  const double peak_rss_mb = PeakRssMegabytes();
  const std::string hash = WeightsHash(executor.scope(), PersistableNames(*workload.program));

  const std::string& name = FLAGS_saved_model.empty() ? FLAGS_model : FLAGS_saved_model;
  std::printf("%s, batch %d, %d threads: %.2f ms a step (p10 %.2f, p90 %.2f), %.1f images/s\n",
              name.c_str(), FLAGS_batch_size, omp_get_max_threads(), step_ms, times.p10, times.p90,
              rate);
  std::printf("%.2f GFLOP a step, %.1f GFLOP/s, %.1f%% of the measured FMA peak of %.0f GFLOP/s\n",
              flop * 1e-9, flop / (step_ms * 1e-3) * 1e-9, 100 * share, peak_flops * 1e-9);
  std::printf(
      "memory: %.1f MB max live, %.1f planned, %.1f without reuse; %.1f reserved with the "
      "parameters, %.1f at the peak; RSS %.1f MB before the model, %.1f at its peak: %.1f more\n",
      static_cast<double>(statistics.max_live_bytes) / 1048576,
      static_cast<double>(statistics.planned_bytes) / 1048576,
      static_cast<double>(statistics.unshared_bytes) / 1048576,
      static_cast<double>(reserved.live_bytes) / 1048576,
      static_cast<double>(reserved.peak_bytes) / 1048576, rss_before_mb, peak_rss_mb,
      peak_rss_mb - rss_before_mb);
  std::printf(
      "%lld instructions, %lld of them copies between layouts; %s %.6f -> %.6f; weights %s\n",
      static_cast<long long>(statistics.instructions),
      static_cast<long long>(statistics.layout_copies),
      FLAGS_saved_model.empty() ? "loss" : "first value", static_cast<double>(first_value),
      static_cast<double>(last_value), hash.c_str());
  if (options.tuner != nullptr) PrintTuning(*options.tuner);
  if (FLAGS_split) PrintSplit(&bound);
  if (FLAGS_json.empty()) return 0;
  const nlohmann::json figures{{"model", name},
                               {"place", FLAGS_place},
                               {"inference", FLAGS_inference || !FLAGS_saved_model.empty()},
                               {"batch_size", FLAGS_batch_size},
                               {"threads", omp_get_max_threads()},
                               {"steps", FLAGS_steps},
                               {"passes", FLAGS_passes},
                               {"step_ms", step_ms},
                               {"step_ms_p10", times.p10},
                               {"step_ms_p90", times.p90},
                               {"samples_per_s", rate},
                               {"flop_per_step", flop},
                               {"fma_peak_flops", peak_flops},
                               {"fma_peak_share", share},
                               {"max_live_bytes", statistics.max_live_bytes},
                               {"planned_bytes", statistics.planned_bytes},
                               {"unshared_bytes", statistics.unshared_bytes},
                               {"derived_bytes", statistics.derived_bytes},
                               {"persistable_bytes", statistics.persistable_bytes},
                               {"reserved_bytes", reserved.live_bytes},
                               {"peak_reserved_bytes", reserved.peak_bytes},
                               {"rss_before_mb", rss_before_mb},
                               {"peak_rss_mb", peak_rss_mb},
                               {"model_rss_mb", peak_rss_mb - rss_before_mb},
                               {"instructions", statistics.instructions},
                               {"layout_copies", statistics.layout_copies},
                               {"first_value", first_value},
                               {"last_value", last_value},
                               {"weights_hash", hash}};
  AtomicWriteFile(FLAGS_json, figures.dump(2) + "\n");
  return 0;
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "model_bench --model=resnet20 [flags]",
       .summary = "Times training steps of a model, or inference, of one that "
                  "was saved too.",
       .run = skiff::Main});
}
