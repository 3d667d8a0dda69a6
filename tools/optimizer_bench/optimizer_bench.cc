// Times the update ops of an optimizer, in the forms that passes give them, and compares them with
// the memory's bandwidth:
//
//   optimizer_bench
//   optimizer_bench --optimizer=adam,lamb --tensors=400 --elements=1000 --clip=global_norm
//   optimizer_bench --optimizer=all --tensors=1 --elements=10000000 --json=figures.json
#include <gflags/gflags.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/command_line/argument_text.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "memory/places.h"
#include "tools/benchmark/process_memory.h"
#include "tools/optimizer_bench/update_timing.h"
#include "tools/pass_flags/pass_flags.h"

DEFINE_string(optimizer, "adam",
              "all, or a comma-separated list of ops: sgd, momentum, lars_momentum, adam, adamw, "
              "adamax, adagrad, decayed_adagrad, adadelta, rmsprop, ftrl, lamb; each with its "
              "default options");
DEFINE_string(tensors, "1,10,100,400,1000,4000",
              "comma-separated numbers of parameters; each is timed with each of --elements");
DEFINE_string(elements, "100,1000,10000,100000,1000000,10000000",
              "comma-separated numbers of float32 elements per parameter");
DEFINE_int64(most_elements, 100000000, "pairs with more elements in all are left out");
DEFINE_string(forms, "loop,merged,flat",
              "comma-separated forms to time: loop (an update op per parameter), merged "
              "(merge_optimizer: one op on lists), flat (fuse_optimizer and flatten_parameters: "
              "one op on flat buffers that includes clipping and decay); all other passes are on");
DEFINE_string(clip, "none",
              "none, or global_norm: the program first clips the gradients to a global norm that "
              "every step exceeds");
DEFINE_string(decay, "none", "none, or l2: the program adds 0.01 of the parameter to its gradient");
DEFINE_string(average, "none",
              "none, or ema: the program keeps exponential averages of the parameters");
DEFINE_string(place, "cpu", "where to run; only cpu, since the stream measures the CPU's memory");
DEFINE_int32(threads, 0, "threads inside ops; 0: OMP_NUM_THREADS decides");
DEFINE_double(seconds, 0.5,
              "least measured time of a form, over five turns; in each turn the stream and all "
              "forms run, one after the other");
DEFINE_string(json, "", "file to write the figures to; empty: none");

namespace skiff {
namespace {

// One line of the table: an optimizer on one number of tensors of one size.
struct Point {
  UpdateWork work;
  UpdateTiming timing;
  std::string skipped;  // why it wasn't timed; empty: it was
};

std::vector<int64_t> ParseCounts(const char* flag, const std::string& text) {
  std::vector<int64_t> counts;
  for (const std::string& part : SplitNames(text)) {
    int64_t count = 0;
    const char* end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data(), end, count);
    SKIFF_ENFORCE(error == std::errc() && stop == end && count > 0, kInvalidArgument, "--", flag,
                  "=", text, ": found \"", part, "\", expected positive numbers");
    counts.push_back(count);
  }
  SKIFF_ENFORCE(!counts.empty(), kInvalidArgument, "--", flag, "=", text,
                ": expected at least one number");
  return counts;
}

std::vector<std::string> ParseChoices(const char* flag, const std::string& text,
                                      const std::vector<std::string>& known) {
  std::vector<std::string> chosen = SplitNames(text);
  for (const std::string& name : chosen) {
    SKIFF_ENFORCE(std::ranges::count(known, name) == 1, kInvalidArgument, "--", flag, "=", text,
                  ": found \"", name, "\", expected some of ", Join(known, ", "));
    SKIFF_ENFORCE(std::ranges::count(chosen, name) == 1, kInvalidArgument, "--", flag, "=", text,
                  ": \"", name, "\" is listed twice");
  }
  SKIFF_ENFORCE(!chosen.empty(), kInvalidArgument, "--", flag, "=", text, ": expected some of ",
                Join(known, ", "));
  return chosen;
}

// Returns whether the flag is `choice`. Throws Error unless it is that or "none".
bool IsChosen(const char* flag, const std::string& text, const std::string& choice) {
  SKIFF_ENFORCE(text == choice || text == "none", kInvalidArgument, "--", flag, "=", text,
                ": expected none or ", choice);
  return text == choice;
}

std::vector<UpdateWork> WorksFromFlags() {
  const std::vector<std::string> names = OptimizerNames();
  const std::vector<int64_t> tensors = ParseCounts("tensors", FLAGS_tensors);
  const std::vector<int64_t> elements = ParseCounts("elements", FLAGS_elements);
  const bool clips = IsChosen("clip", FLAGS_clip, "global_norm");
  const bool decays = IsChosen("decay", FLAGS_decay, "l2");
  const bool averages = IsChosen("average", FLAGS_average, "ema");
  std::vector<UpdateWork> works;
  for (const std::string& optimizer :
       FLAGS_optimizer == "all" ? names : ParseChoices("optimizer", FLAGS_optimizer, names)) {
    for (const int64_t count : tensors) {
      for (const int64_t size : elements) {
        // Divided, since the product of two large numbers could overflow.
        if (count > FLAGS_most_elements / size) continue;
        works.push_back({.optimizer = optimizer,
                         .tensors = count,
                         .elements = size,
                         .clip_global_norm = clips,
                         .l2_decay = decays,
                         .averages = averages});
      }
    }
  }
  SKIFF_ENFORCE(!works.empty(), kInvalidArgument, "--tensors=", FLAGS_tensors,
                " --elements=", FLAGS_elements, " --most_elements=", FLAGS_most_elements,
                ": expected a pair with at most that many elements in all");
  return works;
}

void CheckFlags() {
  SKIFF_ENFORCE(FLAGS_threads >= 0, kInvalidArgument, "--threads=", FLAGS_threads,
                ": expected a number of at least 0");
  SKIFF_ENFORCE(FLAGS_seconds >= 0 && std::isfinite(FLAGS_seconds), kInvalidArgument,
                "--seconds=", FLAGS_seconds, ": expected a number of at least 0");
  SKIFF_ENFORCE(Place::FromName(FLAGS_place).is_cpu(), kUnimplemented, "--place=", FLAGS_place,
                ": expected cpu, whose bandwidth this benchmark measures");
}

// A line on a terminal that the next one replaces; nothing if stderr isn't a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(size_t total) : total_(total), is_shown_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const UpdateWork& work) {
    ++current_;
    if (!is_shown_) return;
    std::fprintf(stderr, "%s[%zu of %zu] %s, %lld x %lld", kClear, current_, total_,
                 work.optimizer.c_str(), static_cast<long long>(work.tensors),
                 static_cast<long long>(work.elements));
    std::fflush(stderr);
  }
  void Clear() const {
    if (is_shown_) std::fputs(kClear, stderr);
  }

 private:
  static constexpr const char* kClear = "\r\033[K";
  size_t total_;
  size_t current_ = 0;
  bool is_shown_;
};

// Returns why there isn't enough memory for a point, or "". Swapping would make its times
// worthless, and running out of memory would end the whole run.
std::string WhySkipped(const UpdateWork& work, size_t forms) {
  constexpr double kMegabyte = 1 << 20;
  const double needed = static_cast<double>(BytesHeld(work, forms)) / kMegabyte;
  const double available = AvailableMegabytes();
  if (available == 0 || needed < 0.9 * available) return {};
  return StrCat("takes ", std::llround(needed), " MiB, and ", std::llround(available), " are free");
}

Point Measure(const UpdateWork& work, const std::vector<std::string>& forms) {
  const UpdateTimingOptions options{.place = Place::FromName(FLAGS_place),
                                    .memory = MemoryFromFlags(),
                                    .in_turn = {.seconds = FLAGS_seconds}};
  // The memory of the last point, which may have other sizes. WhySkipped then sees it as available.
  AllocatorOf(options.place).ReleaseCached();
  Point point{.work = work, .timing = {}, .skipped = WhySkipped(work, forms.size())};
  if (point.skipped.empty()) point.timing = TimeUpdates(work, forms, options);
  return point;
}

double GigabytesPerSecond(int64_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds * 1e-9;
}

void PrintHeader() {
  std::printf("%s, %d threads, float32, clip %s, decay %s, average %s\n", CpuModelName().c_str(),
              omp_get_max_threads(), FLAGS_clip.c_str(), FLAGS_decay.c_str(),
              FLAGS_average.c_str());
  std::printf("%-16s %7s %9s %-7s %12s %12s %9s %9s %9s %10s\n", "optimizer", "tensors", "elements",
              "form", "us a step", "fastest", "GB/s", "of stream", "launches", "loop/form");
}

void PrintPoint(const Point& point) {
  const UpdateWork& work = point.work;
  std::printf("%-16s %7lld %9lld ", work.optimizer.c_str(), static_cast<long long>(work.tensors),
              static_cast<long long>(work.elements));
  if (!point.skipped.empty()) {
    std::printf("skipped: %s\n", point.skipped.c_str());
    return;
  }
  const UpdateTiming& timing = point.timing;
  std::printf("%-7s %12.2f %12.2f %9.2f\n", "stream", timing.stream_seconds * 1e6,
              timing.fastest_stream_seconds * 1e6,
              GigabytesPerSecond(timing.bytes, timing.stream_seconds));
  for (const FormTiming& form : timing.forms) {
    std::printf("%34s %-7s %12.2f %12.2f %9.2f %7.1f %% %9lld", "", form.form.c_str(),
                form.step_seconds * 1e6, form.fastest_seconds * 1e6,
                GigabytesPerSecond(timing.bytes, form.step_seconds), 100 * form.stream_share,
                static_cast<long long>(form.launches));
    if (form.loop_over_it) std::printf(" %10.2f", *form.loop_over_it);
    std::printf("\n");
  }
  std::fflush(stdout);
}

nlohmann::json FormJson(const FormTiming& form, int64_t bytes) {
  nlohmann::json json = {{"step_microseconds", form.step_seconds * 1e6},
                         {"fastest_microseconds", form.fastest_seconds * 1e6},
                         {"gigabytes_per_second", GigabytesPerSecond(bytes, form.step_seconds)},
                         {"stream_share", form.stream_share},
                         {"launches", form.launches},
                         {"planned_bytes", form.planned_bytes},
                         {"compile_seconds", form.compile_seconds}};
  if (form.loop_over_it) json["loop_over_it"] = *form.loop_over_it;
  return json;
}

nlohmann::json PointJson(const Point& point) {
  nlohmann::json json = {{"optimizer", point.work.optimizer},
                         {"tensors", point.work.tensors},
                         {"elements", point.work.elements}};
  if (!point.skipped.empty()) {
    json["skipped"] = point.skipped;
    return json;
  }
  const UpdateTiming& timing = point.timing;
  json["bytes"] = timing.bytes;
  json["stream_microseconds"] = timing.stream_seconds * 1e6;
  json["stream_fastest_microseconds"] = timing.fastest_stream_seconds * 1e6;
  json["stream_gigabytes_per_second"] = GigabytesPerSecond(timing.bytes, timing.stream_seconds);
  for (const FormTiming& form : timing.forms) {
    json["forms"][form.form] = FormJson(form, timing.bytes);
  }
  return json;
}

void WriteJson(const std::vector<Point>& points) {
  nlohmann::json list = nlohmann::json::array();
  for (const Point& point : points) list.push_back(PointJson(point));
  const nlohmann::json figures = {
      {"cpu", CpuModelName()},    {"place", FLAGS_place},     {"threads", omp_get_max_threads()},
      {"dtype", "float32"},       {"clip", FLAGS_clip},       {"decay", FLAGS_decay},
      {"average", FLAGS_average}, {"seconds", FLAGS_seconds}, {"points", std::move(list)}};
  AtomicWriteFile(FLAGS_json, figures.dump(2) + "\n");
}

int Main() {
  CheckFlags();
  const std::vector<std::string> forms = ParseChoices("forms", FLAGS_forms, FormNames());
  const std::vector<UpdateWork> works = WorksFromFlags();
  if (FLAGS_threads > 0) omp_set_num_threads(FLAGS_threads);
  PrintHeader();
  ProgressLine progress(works.size());
  std::vector<Point> points;
  for (const UpdateWork& work : works) {
    progress.Show(work);
    points.push_back(Measure(work, forms));
    progress.Clear();
    PrintPoint(points.back());
  }
  if (!FLAGS_json.empty()) WriteJson(points);
  return 0;
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "optimizer_bench [--optimizer=adam] [flags]",
       .summary =
           "Times optimizers: programs with nothing but update ops, as a loop over "
           "parameters, on lists and on flat buffers, beside a stream that reads and updates "
           "as many arrays.",
       .run = skiff::Main,
       .flags = {"optimizer", "tensors", "elements", "most_elements", "forms", "clip", "decay",
                 "average", "policy", "flat_alignment_bytes", "place", "threads", "seconds",
                 "json"}});
}
