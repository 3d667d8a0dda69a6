// Times training steps of a model, or inference, and shows where time and memory go.
//
// A run measures the machine's FMA peak first, then builds the model, warms up with 3 steps, times
// --steps more, and compares the work of a step (its FLOP, counted from shapes) with the peak. With
// --pairs, steps take one batch after the other; all of them warm up, so all plans are there, and
// the figures of a plan are those of the largest. The split by op comes last, from a step of its
// own, because timing every instruction slows it down.
// With --clients, several threads then serve the model at once.
// Under a launcher of MPI, each process is a rank, and all ranks train on copies of one batch; rank
// 0 prints its figures, and the samples of all ranks together.
// The split has the ops of loops, too: "while > mul" is a mul in the body of a while, in all
// iterations, and "while" what else the loop does.
#include <gflags/gflags.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "framework/analysis/memory_report.h"
#include "framework/analysis/ops_on_host.h"
#include "framework/comm/communicator.h"
#include "framework/comm/gather.h"
#include "framework/comm/rank_resources.h"
#include "framework/command_line/argument_text.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "framework/io/text_lines.h"
#include "framework/tuning/kernel_choices.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "models/common/rank_flags.h"
#include "models/common/rank_setup.h"
#include "skiff/skiff.h"
#include "tools/benchmark/process_memory.h"
#include "tools/benchmark/run_times.h"
#include "tools/model_bench/flop_count.h"
#include "tools/model_bench/fma_peak.h"
#include "tools/model_workload/model_workload.h"
#include "tools/pass_flags/pass_flags.h"

DEFINE_string(
    model, "resnet20",
    "mlp, lenet (1x28x28), resnet18, resnet20, resnet32, resnet44, resnet56, resnet110, "
    "vgg11, vgg13, vgg16, vgg19 (3x32x32), resnet34, resnet50, resnet101 (3x224x224) or "
    "ernie_tiny, ernie_mini, ernie_mini_dropout (sequences of 128 tokens) or ernie_20_layers "
    "(334 parameter tensors, sequences of 32), char_lstm or char_gru (64 characters), or one "
    "recurrent layer over sequences as long as "
    "sentences: lstm_512, gru_512, padded_lstm_512 or padded_gru_512, or a translation model with "
    "sentences of 30 tokens: seq2seq_gru_bahdanau or seq2seq_lstm_luong");
DEFINE_string(optimizer, "momentum",
              "momentum with L2 decay, adam with L2 decay and clipping by the global norm, or "
              "plain_adam with clipping alone");
DEFINE_string(
    precision, "float32",
    "what products, convolutions and activations compute in: float32, bfloat16, or float16 "
    "with loss scaling; --saved_model, too");
DEFINE_string(decoder, "attention_decoder",
              "how seq2seq_gru_bahdanau and seq2seq_lstm_luong run their decoder: "
              "attention_decoder, one op, or dynamic_rnn, a loop of layers");
DEFINE_string(place, "cpu",
              "where to run: cpu, cuda, or cuda:1 for the second of several devices. With several "
              "ranks on a machine, cuda is another device for each");
DEFINE_string(math, "full",
              "on a device, how products and convolutions of float32 compute: full, or tf32, which "
              "rounds their factors; ignored on the CPU");
DEFINE_bool(graphs, true,
            "on a device, launch stretches of instructions as graphs; not with ragged feeds, and "
            "ignored on the CPU");
DEFINE_bool(inference, false,
            "time the forward pass as in evaluation, with the loss, instead of training steps");
DEFINE_string(
    saved_model, "",
    "folder of a model saved for inference, such as model/ in the output of a training: time "
    "it instead of --model; empty: none");
DEFINE_int32(batch_size, 64, "samples per step: images, or sequences of tokens");
DEFINE_int64(length, 0,
             "tokens of a sequence; 0: as many as --model says (only for models of text)");
DEFINE_string(pairs, "",
              "with seq2seq_gru_bahdanau and seq2seq_lstm_luong: file with the numbers of tokens "
              "of a sentence and of its translation on each line. --batch_size lines are a batch, "
              "and steps take one batch after the other; lines that don't fill a batch are left "
              "out. Empty: sentences of --length");
DEFINE_int32(threads, 0,
             "threads inside ops, of each rank; 0: as many as OMP_NUM_THREADS says; if that isn't "
             "set, one per core, shared by the ranks of the machine");
DEFINE_int32(clients, 0,
             "in inference: afterwards, times so many threads at once, each with a clone of the "
             "program (CompiledProgram::Clone), --steps steps in each; --threads are inside ops "
             "of each of them");
DEFINE_int32(steps, 10, "timed steps, after 3 untimed ones or one for each batch of --pairs");
DEFINE_string(kernels, "",
              "kernels to force, a comma-separated list of op=kernel, such as "
              "conv2d=onednn,conv2d_grad=onednn");
DEFINE_string(
    tune_kernels, "",
    "file that remembers which kernels are fastest on this machine, created if it doesn't exist. "
    "Kernels that it doesn't know are timed first, a fraction of a second each (which raises the "
    "peaks of memory), and choices that differ from the rule are printed. --kernels takes "
    "precedence; empty: kernels by rule");
DEFINE_int64(memory_limit_bytes, 0,
             "the most that the allocator may take from the system; 0: no limit");
DEFINE_string(json, "", "file for the figures, with the settings they depend on; empty: none");
DEFINE_bool(split, true,
            "print the time of a step by op and its share of the peak: of products of bfloat16 "
            "where a kernel uses the processor's instructions for them, else of float32 FMA");
DEFINE_int32(seed, 1, "seed of initial values and generated samples");

namespace skiff {
namespace {

// A saved model is timed in inference.
bool Trains() { return !FLAGS_inference && FLAGS_saved_model.empty(); }

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
  options.graphs = FLAGS_graphs;
  options.math = MathModeFromName(FLAGS_math);
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

// Prints the kernels that differ from those of the rule.
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

// FLOP/s that the machine can do; 0: not measured.
struct Peaks {
  double float32 = 0;
  double bfloat16 = 0;

  double Of(std::string_view kernel) const {
    return kernel == kNativeHalfKernel ? bfloat16 : float32;
  }
};

// What the instructions of one op and kernel took.
struct SplitRow {
  double peak = 0;  // of the kernel
  double seconds = 0;
  double flop = 0;
  int count = 0;
};

// Prints the time of one more step by op and kernel, the longest first, with the share of the peak
// of those whose FLOP are known.
void PrintSplit(const Peaks& peaks, BoundProgram* bound) {
  std::map<std::string, SplitRow> by_kernel;
  double total = 0;
  const std::vector<InstructionTime> times = bound->TimedStep();
  for (size_t i = 0; i < times.size(); ++i) {
    const InstructionTime& time = times[i];
    SplitRow& row = by_kernel[time.kernel.empty() ? time.type : time.type + " " + time.kernel];
    row.peak = peaks.Of(time.kernel);
    row.seconds += time.seconds;
    // The ops of loops come behind, and have their FLOP in that of the loop.
    const std::vector<Instruction>& instructions = bound->plan().instructions;
    if (i < instructions.size() && instructions[i].kind != InstructionKind::kLoop)
      row.flop += CountFlop(bound->plan(), instructions[i]);
    ++row.count;
    total += time.seconds;
  }
  std::vector<std::pair<std::string, SplitRow>> rows(by_kernel.begin(), by_kernel.end());
  std::ranges::sort(
      rows, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::printf("%10s %7s %7s %6s  op and kernel\n", "ms", "share", "of peak", "count");
  for (const auto& [name, row] : rows) {
    std::printf("%10.3f %6.1f%% ", row.seconds * 1e3, 100 * row.seconds / total);
    if (row.flop > 0 && row.peak > 0) {
      std::printf("%6.1f%%", 100 * row.flop / row.seconds / row.peak);
    } else {
      std::printf("%7s", "");
    }
    std::printf(" %6d  %s\n", row.count, name.c_str());
  }
}

// The figures of a run, from which both the text and the JSON file are made.
struct Figures {
  std::string name;  // of the model, or the folder of a saved one
  Peaks peaks;
  double rss_before_mb = 0;  // before the model was built
  double peak_rss_mb = 0;
  Percentiles step_ms;
  double mean_step_ms = 0;
  // The mean processor time of a step, of all threads. On one thread, it hardly depends on what
  // else the machine does; more threads may wait for each other in it.
  double step_cpu_ms = 0;
  double host_ms = 0;  // PlanStatistics::issue_seconds of the last step
  int64_t graphs = 0;  // of the last batch's plan
  double flop = 0;     // of one step
  size_t batches = 1;
  PlanStatistics plan;                         // the largest
  std::map<std::string, int64_t> ops_on_host;  // of the last batch
  // Parameters, optimizer states, derived forms, the arena, feeds and fetches.
  AllocatorStatistics allocated;
  // The loss, or the first number that a saved model returns, in the first and in the last step.
  float first_value = 0;
  float last_value = 0;
  std::string weights_hash;
  // Of several ranks.
  int32_t ranks = 1;
  SumOrder order = SumOrder::kRanks;  // of their gradients
  // By one rank in a step; nothing where a library adds, which doesn't say what it sends.
  std::optional<double> sent_bytes;
  // With --clients.
  Percentiles client_step_ms;
  double clients_samples_per_s = 0;
  double client_mb = 0;  // what each takes beside the weights

  double flops() const { return flop / (step_ms.median * 1e-3); }
  double peak_share() const { return flops() / peaks.float32; }
  double samples_per_s() const {
    return ranks * FLAGS_batch_size / ((batches == 1 ? step_ms.median : mean_step_ms) * 1e-3);
  }
  double model_rss_mb() const { return peak_rss_mb - rss_before_mb; }
};

void CheckFlags() {
  SKIFF_ENFORCE(FLAGS_batch_size > 0 && FLAGS_steps > 0 && FLAGS_threads >= 0, kInvalidArgument,
                "--batch_size=", FLAGS_batch_size, " --steps=", FLAGS_steps,
                " --threads=", FLAGS_threads,
                ": expected at least 1 sample, 1 step and 0 threads (0: chosen by the machine)");
  SKIFF_ENFORCE(FLAGS_clients >= 0 && (FLAGS_clients == 0 || (!Trains() && FLAGS_pairs.empty())),
                kInvalidArgument, "--clients=", FLAGS_clients,
                ": expected 0, or a number of threads with --inference or --saved_model, without "
                "--pairs");
  SKIFF_ENFORCE(
      FLAGS_saved_model.empty() || (gflags::GetCommandLineFlagInfoOrDie("model").is_default &&
                                    !FLAGS_inference && FLAGS_length == 0 && FLAGS_pairs.empty()),
      kInvalidArgument, "--saved_model=", FLAGS_saved_model, " with --model=", FLAGS_model,
      FLAGS_inference ? " --inference" : "",
      FLAGS_length == 0 ? "" : StrCat(" --length=", FLAGS_length),
      FLAGS_pairs.empty() ? "" : StrCat(" --pairs=", FLAGS_pairs),
      ": expected it alone; a saved model is timed in inference");
}

std::vector<PairLengths> PairsFromFlags() {
  std::vector<PairLengths> pairs;
  if (FLAGS_pairs.empty()) return pairs;
  SKIFF_ENFORCE(FLAGS_length == 0, kInvalidArgument, "--pairs=", FLAGS_pairs,
                " --length=", FLAGS_length, ": expected one of the two");
  const std::string file = ReadTextFile(FLAGS_pairs);
  for (const std::string_view line : LinesOf(file)) {
    std::istringstream numbers{std::string(line)};
    PairLengths pair;
    std::string rest;
    SKIFF_ENFORCE(numbers >> pair.source >> pair.target && !(numbers >> rest), kInvalidArgument,
                  FLAGS_pairs, ":", pairs.size() + 1, ": found \"", line,
                  "\", expected two numbers of tokens");
    pairs.push_back(pair);
  }
  SKIFF_ENFORCE(!pairs.empty(), kInvalidArgument, FLAGS_pairs,
                ": found no line, expected a pair on each");
  return pairs;
}

ModelWorkload WorkloadFromFlags(Executor* executor) {
  const ModelWorkloadOptions options{
      .batch_size = FLAGS_batch_size,
      .length = FLAGS_length,
      .seed = static_cast<uint64_t>(FLAGS_seed),
      .trains = !FLAGS_inference,
      .optimizer = FLAGS_optimizer,
      .precision = {.dtype = training::PrecisionFromName("precision", FLAGS_precision)},
      .decoder = FLAGS_decoder,
      .pairs = PairsFromFlags()};
  return FLAGS_saved_model.empty() ? MakeModelWorkload(FLAGS_model, options, executor)
                                   : LoadModelWorkload(FLAGS_saved_model, options, executor);
}

// Returns the bytes that this rank has sent so far, sums by a library apart.
int64_t BytesSent(const DataParallelOptions& ranks) {
  int64_t bytes = 0;
  for (const auto& communicator : {ranks.communicator, ranks.device_communicator}) {
    if (communicator != nullptr) bytes += communicator->bytes_sent();
  }
  return bytes;
}

// Runs the steps and fills in the figures that depend on them. Returns the last batch's program.
BoundProgram TimeSteps(const ModelWorkload& workload, const DataParallelOptions& ranks,
                       CompiledProgram* compiled, Figures* figures) {
  const std::vector<FeedList>& batches = workload.batches;
  BoundProgram bound = compiled->Bind(batches[0], {workload.fetch});
  size_t next = 0;
  const auto step = [&] {
    const FeedList& batch = batches[next];
    next = (next + 1) % batches.size();
    if (batches.size() > 1 && !bound.Feed(batch)) bound = compiled->Bind(batch, {workload.fetch});
    bound.Step();
    // As a training does that looks at its loss: the step is over then, on a device as well.
    bound.fetch(0);
  };
  // Steps that aren't timed: the first ones touch their memory for the first time.
  for (size_t i = 0; i < std::max<size_t>(3, batches.size()); ++i) {
    step();
    if (i == 0) figures->first_value = bound.fetch(0).data<float>()[0];
    if (bound.statistics().planned_bytes > figures->plan.planned_bytes)
      figures->plan = bound.statistics();
  }
  std::vector<double> ms;
  const int64_t sent_before = BytesSent(ranks);
  const std::clock_t start = std::clock();
  for (int32_t i = 0; i < FLAGS_steps; ++i) ms.push_back(SecondsOf(step) * 1e3);
  if (ranks.order == SumOrder::kRanks) {
    figures->sent_bytes = static_cast<double>(BytesSent(ranks) - sent_before) / FLAGS_steps;
  }
  figures->step_cpu_ms =
      1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / FLAGS_steps;
  figures->last_value = bound.fetch(0).data<float>()[0];
  figures->step_ms = PercentilesOf(ms);
  figures->mean_step_ms = std::accumulate(ms.begin(), ms.end(), 0.0) / FLAGS_steps;
  figures->batches = batches.size();
  figures->host_ms = 1e3 * bound.statistics().issue_seconds;
  figures->graphs = bound.statistics().graphs;
  // A plan for a capacity has more FLOP than its batches.
  if (batches.size() == 1) figures->flop = CountFlop(bound.plan());
  return bound;
}

// Runs the steps in several threads, each with a clone, and fills in what they take. They begin at
// the same time, when all have warmed up; what they do together is counted until the last one ends.
void TimeClients(const ModelWorkload& workload, const CompiledProgram& compiled, Figures* figures) {
  constexpr int32_t kUntimed = 3;
  const auto live_bytes = [] { return AllocatorOf(Place::Cpu()).statistics().live_bytes; };
  const int64_t before = live_bytes();
  std::vector<CompiledProgram> clones;
  std::vector<BoundProgram> bound;
  for (int32_t i = 0; i < FLAGS_clients; ++i) {
    clones.push_back(compiled.Clone());
    bound.push_back(clones.back().Bind(workload.batches[0], {workload.fetch}));
  }
  std::vector<std::promise<void>> ready(bound.size());
  std::vector<std::future<std::vector<double>>> served;
  std::promise<void> go;  // destroyed before `served`, whose threads then wait no longer
  const auto serve = [&ready, start = go.get_future().share(), threads = omp_get_max_threads()](
                         size_t i, BoundProgram* mine) {
    omp_set_num_threads(threads);  // each thread has its own number
    try {
      for (int32_t k = 0; k < kUntimed; ++k) mine->Step();
    } catch (...) {
      ready[i].set_exception(std::current_exception());
      throw;
    }
    ready[i].set_value();
    start.wait();
    std::vector<double> ms;
    for (int32_t k = 0; k < FLAGS_steps; ++k) ms.push_back(SecondsOf([&] { mine->Step(); }) * 1e3);
    return ms;
  };
  for (size_t i = 0; i < bound.size(); ++i) {
    served.push_back(std::async(std::launch::async, serve, i, &bound[i]));
  }
  for (std::promise<void>& warm : ready) warm.get_future().get();
  std::vector<double> ms;
  const double seconds = SecondsOf([&] {
    go.set_value();
    for (auto& of_one : served) std::ranges::copy(of_one.get(), std::back_inserter(ms));
  });
  figures->client_step_ms = PercentilesOf(ms);
  figures->clients_samples_per_s =
      static_cast<double>(FLAGS_clients) * FLAGS_steps * FLAGS_batch_size / seconds;
  figures->client_mb = static_cast<double>(live_bytes() - before) / (1 << 20) / FLAGS_clients;
}

void PrintClients(const Figures& figures) {
  const Percentiles& ms = figures.client_step_ms;
  std::printf(
      "%d clients at once: %.2f ms a step (p10 %.2f, p90 %.2f), %.1f samples/s together; %.1f MB "
      "each beside the weights\n",
      FLAGS_clients, ms.median, ms.p10, ms.p90, figures.clients_samples_per_s, figures.client_mb);
}

void PrintRanks(const Figures& figures) {
  if (figures.ranks == 1) return;
  std::printf("%d ranks, each with such a batch; ", figures.ranks);
  if (figures.sent_bytes.has_value()) {
    std::printf("each sends %.2f MB a step\n", *figures.sent_bytes / (1 << 20));
  } else {
    std::printf("the library that moves the gradients adds them\n");
  }
}

void PrintFigures(const Figures& figures) {
  constexpr double kMegabyte = 1 << 20;
  const Percentiles& step_ms = figures.step_ms;
  const PlanStatistics& plan = figures.plan;
  std::printf("%s, batch %d, %d threads: %.2f ms a step (p10 %.2f, p90 %.2f), %.1f samples/s\n",
              figures.name.c_str(), FLAGS_batch_size, omp_get_max_threads(), step_ms.median,
              step_ms.p10, step_ms.p90, figures.samples_per_s());
  PrintRanks(figures);
  if (figures.batches == 1 && figures.peaks.float32 == 0) {
    std::printf("on %s: %.2f GFLOP a step, %.1f GFLOP/s\n", FLAGS_place.c_str(),
                figures.flop * 1e-9, figures.flops() * 1e-9);
  } else if (figures.batches == 1) {
    const bool in_bfloat16 = figures.peaks.bfloat16 > 0;
    const double peak = in_bfloat16 ? figures.peaks.bfloat16 : figures.peaks.float32;
    std::printf("%.2f GFLOP a step, %.1f GFLOP/s, %.1f%% of the measured %s peak of %.0f GFLOP/s\n",
                figures.flop * 1e-9, figures.flops() * 1e-9, 100 * figures.flops() / peak,
                in_bfloat16 ? "bfloat16" : "FMA", peak * 1e-9);
  } else {
    std::printf("%zu batches, %.2f ms a step on average\n", figures.batches, figures.mean_step_ms);
  }
  std::printf(
      "memory: %.1f MB max live, %.1f planned, %.1f without reuse; %.1f reserved with the "
      "parameters, %.1f at the peak; RSS %.1f MB before the model, %.1f at its peak: %.1f more\n",
      static_cast<double>(plan.max_live_bytes) / kMegabyte,
      static_cast<double>(plan.planned_bytes) / kMegabyte,
      static_cast<double>(plan.unshared_bytes) / kMegabyte,
      static_cast<double>(figures.allocated.live_bytes) / kMegabyte,
      static_cast<double>(figures.allocated.peak_bytes) / kMegabyte, figures.rss_before_mb,
      figures.peak_rss_mb, figures.model_rss_mb());
  std::printf(
      "%lld instructions, %lld of them copies between layouts; %s %.6f -> %.6f; weights %s\n",
      static_cast<long long>(plan.instructions), static_cast<long long>(plan.layout_copies),
      FLAGS_saved_model.empty() ? "loss" : "first value", static_cast<double>(figures.first_value),
      static_cast<double>(figures.last_value), figures.weights_hash.c_str());
}

void PrintRecomputed(const Recomputed& recomputed) {
  const std::string again = RecomputationText(recomputed);
  if (!again.empty()) std::printf("%s\n", again.c_str());
}

void PrintOpsOnHost(const std::map<std::string, int64_t>& counts) {
  std::vector<std::string> types;
  for (const auto& [type, count] : counts) types.push_back(StrCat(count, " ", type));
  if (!types.empty()) std::printf("on the CPU: %s\n", Join(types, ", ").c_str());
}

// Returns the figures of ranks, and the settings they depend on.
nlohmann::json JsonOfRanks(const Figures& figures) {
  return {
      {"ranks", figures.ranks},
      {"sent_bytes", figures.sent_bytes ? nlohmann::json(*figures.sent_bytes) : nlohmann::json()},
      {"reduction", SumOrderName(figures.order)},
      {"bucket_bytes", FLAGS_bucket_bytes},
      {"overlap", FLAGS_overlap},
      {"shard_optimizer", FLAGS_shard_optimizer},
      {"sync_batch_norm", FLAGS_sync_batch_norm}};
}

nlohmann::json JsonOf(const Figures& figures) {
  const PlanStatistics& plan = figures.plan;
  const auto of_one_batch = [&](double value) {
    return figures.batches == 1 ? nlohmann::json(value) : nlohmann::json();
  };
  const bool has_peak = figures.peaks.float32 > 0;
  return {{"model", figures.name},
          {"place", FLAGS_place},
          {"math", FLAGS_math},
          {"inference", !Trains()},
          {"batch_size", FLAGS_batch_size},
          {"length", FLAGS_length},
          {"threads", omp_get_max_threads()},
          {"steps", FLAGS_steps},
          {"optimizer", Trains() ? FLAGS_optimizer : ""},
          {"precision", FLAGS_precision},
          {"decoder", FLAGS_decoder},
          {"seed", FLAGS_seed},
          {"kernels", FLAGS_kernels},
          {"passes", FLAGS_passes},
          {"pairs", FLAGS_pairs},
          {"batches", figures.batches},
          {"step_ms", figures.step_ms.median},
          {"step_ms_mean", figures.mean_step_ms},
          {"step_ms_p10", figures.step_ms.p10},
          {"step_ms_p90", figures.step_ms.p90},
          {"step_cpu_ms", figures.step_cpu_ms},
          {"samples_per_s", figures.samples_per_s()},
          {"flop_per_step", of_one_batch(figures.flop)},
          {"fma_peak_flops", has_peak ? nlohmann::json(figures.peaks.float32) : nlohmann::json()},
          {"bf16_peak_flops",
           figures.peaks.bfloat16 > 0 ? nlohmann::json(figures.peaks.bfloat16) : nlohmann::json()},
          {"fma_peak_share", has_peak ? of_one_batch(figures.peak_share()) : nlohmann::json()},
          {"max_live_bytes", plan.max_live_bytes},
          {"planned_bytes", plan.planned_bytes},
          {"unshared_bytes", plan.unshared_bytes},
          {"host_planned_bytes", plan.host_planned_bytes},
          {"graphs", figures.graphs},
          {"host_ms", figures.host_ms},
          {"derived_bytes", plan.derived_bytes},
          {"persistable_bytes", plan.persistable_bytes},
          {"reserved_bytes", figures.allocated.live_bytes},
          {"peak_reserved_bytes", figures.allocated.peak_bytes},
          {"rss_before_mb", figures.rss_before_mb},
          {"peak_rss_mb", figures.peak_rss_mb},
          {"model_rss_mb", figures.model_rss_mb()},
          {"instructions", plan.instructions},
          {"recompute", FLAGS_recompute},
          {"recomputed_instructions", plan.recomputed.instructions},
          {"recomputed_cost_share", plan.recomputed.cost_share},
          {"ops_on_host", nlohmann::json(figures.ops_on_host)},
          {"layout_copies", plan.layout_copies},
          {"first_value", figures.first_value},
          {"last_value", figures.last_value},
          {"weights_hash", figures.weights_hash},
          {"clients", FLAGS_clients},
          {"client_step_ms", figures.client_step_ms.median},
          {"client_step_ms_p10", figures.client_step_ms.p10},
          {"client_step_ms_p90", figures.client_step_ms.p90},
          {"clients_samples_per_s", figures.clients_samples_per_s},
          {"client_mb", figures.client_mb}};
}

// Lets rank 0 choose the kernels of all batches, and the other ranks take these. Does nothing for a
// single rank, which chooses when it binds.
void AgreeOnKernels(const ModelWorkload& workload, const CompileOptions& options,
                    Executor* executor, CompiledProgram* compiled) {
  Communicator* const ranks = options.data_parallel.communicator.get();
  if (ranks == nullptr || options.tuner == nullptr) return;
  const bool chooses = ranks->world().rank == 0;
  if (chooses) {
    for (const FeedList& batch : workload.batches) compiled->Bind(batch, {workload.fetch});
  }
  const std::string own = chooses ? PrintKernelChoices(options.tuner->choices()) : "";
  const std::string chosen = GatherTexts(ranks, own)[0];
  if (chooses) return;
  options.tuner->FixChoices(ParseKernelChoices(chosen, "the kernels that rank 0 has chosen"));
  *compiled = executor->Compile(*workload.program, options);
}

// Returns the hash of the weights and the optimizer's states, of which a rank may keep only a part;
// "" on other ranks than 0. All ranks call it.
std::string HashOnRank0(const ModelWorkload& workload, int32_t rank, CompiledProgram* compiled) {
  const std::unique_ptr<Scope> whole = compiled->GatherScope();
  return rank == 0 ? WeightsHash(*whole, PersistableNames(*workload.program)) : "";
}

void Print(const Figures& figures, const KernelTuner* tuner, BoundProgram* bound) {
  PrintFigures(figures);
  PrintRecomputed(figures.plan.recomputed);
  if (FLAGS_clients > 0) PrintClients(figures);
  PrintOpsOnHost(figures.ops_on_host);
  if (tuner != nullptr) PrintTuning(*tuner);
  if (FLAGS_split) PrintSplit(figures.peaks, bound);
  if (FLAGS_json.empty()) return;
  nlohmann::json json = JsonOf(figures);
  json.update(JsonOfRanks(figures));
  AtomicWriteFile(FLAGS_json, json.dump(2) + "\n");
}

// `ranks`: of several ranks, or nullptr.
int Run(const std::shared_ptr<Communicator>& ranks) {
  CheckFlags();
  models::SetThreads(FLAGS_threads, ranks.get());
  const World world = models::WorldOf(ranks.get());
  const Place place = PlaceOfRank(FLAGS_place, world);
  Figures figures;
  figures.name = FLAGS_saved_model.empty() ? FLAGS_model : FLAGS_saved_model;
  if (place.is_cpu()) {
    figures.peaks.float32 = MeasureFmaPeak();
    if (FLAGS_precision == DTypeName(DType::kBFloat16)) figures.peaks.bfloat16 = MeasureBf16Peak();
  }
  figures.rss_before_mb = RssMegabytes();

  AllocatorOf(place).SetLimit(FLAGS_memory_limit_bytes);
  Executor executor(place);
  const ModelWorkload workload = WorkloadFromFlags(&executor);
  CompileOptions options = OptionsFromFlags();
  options.data_parallel = models::DataParallelFromFlags(ranks, place);
  figures.ranks = world.size;
  figures.order = options.data_parallel.order;
  CompiledProgram compiled = executor.Compile(*workload.program, options);
  AgreeOnKernels(workload, options, &executor, &compiled);
  BoundProgram bound = TimeSteps(workload, options.data_parallel, &compiled, &figures);
  // Before the hash, which takes memory of its own.
  figures.allocated = AllocatorOf(place).statistics();
  figures.peak_rss_mb = PeakRssMegabytes();
  figures.ops_on_host = OpsOnHost(bound.plan());
  figures.weights_hash = HashOnRank0(workload, world.rank, &compiled);

  if (FLAGS_clients > 0) TimeClients(workload, compiled, &figures);
  if (world.rank == 0) {
    Print(figures, options.tuner.get(), &bound);
  } else if (FLAGS_split) {
    bound.TimedStep();  // the ranks run the same steps
  }
  return 0;
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "model_bench --model=resnet20 [flags]",
       .summary =
           "Times the training steps of a model, or inference with it or with a saved model.",
       .run = [] { return skiff::models::RunAsRank(skiff::Run); }});
}
