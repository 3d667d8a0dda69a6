// Exposes memory/arena_planner.h on the command line, for sets of buffers from anywhere: to measure
// the planner on known benchmarks, and to reproduce a plan that looks wrong.
#include "tools/skiff/plan_memory.h"

#include <gflags/gflags.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/io/file.h"
#include "memory/arena_planner.h"
#include "tools/skiff/buffer_table.h"

DEFINE_string(input, "", "CSV file of the buffers, with the columns id, lower, upper, size");
DEFINE_string(output, "",
              "what to write: plan_memory writes a CSV file, the input plus a column offset, or "
              "nothing if it is empty; convert writes the model");
DEFINE_int64(capacity, 0,
             "bytes that the plan must fit into, else the exit status is 1; 0: as few as possible");
DEFINE_double(time_limit_s, 10,
              "seconds to search if quick placements aren't enough; 0: only quick placements");
DEFINE_int64(alignment, 1, "alignment of the offsets, a power of two");
DECLARE_bool(json);

namespace skiff {
namespace {

struct Figures {
  size_t buffers;
  int64_t bound;  // in bytes, like peak and capacity
  int64_t peak;
  int64_t capacity;  // 0: none
  double seconds;    // of planning, without reading and writing files
  double ratio() const {
    return bound == 0 ? 1.0 : static_cast<double>(peak) / static_cast<double>(bound);
  }
  bool fits() const { return capacity == 0 || peak <= capacity; }
};

std::string Text(const Figures& figures) {
  const std::string line =
      StrCat(figures.buffers, " buffers: bound ", figures.bound, " bytes, peak ", figures.peak,
             " bytes, ratio ", FormatFixed(figures.ratio(), 6), ", ",
             FormatFixed(figures.seconds, 3), " s\n");
  if (figures.fits()) return line;
  return line + StrCat("the peak is ", figures.peak - figures.capacity,
                       " bytes above the capacity of ", figures.capacity, " bytes\n");
}

std::string Json(const Figures& figures) {
  nlohmann::ordered_json json = {
      {"buffers", figures.buffers}, {"bound", figures.bound},     {"peak", figures.peak},
      {"ratio", figures.ratio()},   {"seconds", figures.seconds},
  };
  if (figures.capacity > 0) {
    json["capacity"] = figures.capacity;
    json["fits"] = figures.fits();
  }
  return json.dump() + "\n";
}

int Run() {
  SKIFF_ENFORCE(!FLAGS_input.empty(), kInvalidArgument, "--input is missing: expected a CSV file");
  SKIFF_ENFORCE(FLAGS_capacity >= 0, kInvalidArgument, "--capacity=", FLAGS_capacity,
                ": expected at least 0");
  SKIFF_ENFORCE(std::isfinite(FLAGS_time_limit_s) && FLAGS_time_limit_s >= 0, kInvalidArgument,
                "--time_limit_s=", FLAGS_time_limit_s, ": expected at least 0");
  const BufferTable table = ParseBufferTable(ReadFile(FLAGS_input), FLAGS_input, FLAGS_alignment);
  // Reading the file, which can take longer than the planning, isn't timed.
  const auto begin = std::chrono::steady_clock::now();
  // Here the time limits the search, not the numbers of nodes and steps that make a plan
  // reproducible.
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  const int64_t nodes = FLAGS_time_limit_s > 0 ? kUnlimited : 0;
  const ArenaPlan plan = PlanArena(table.buffers, {.capacity = FLAGS_capacity,
                                                   .max_search_nodes = nodes,
                                                   .max_search_steps = kUnlimited,
                                                   .time_limit_seconds = FLAGS_time_limit_s});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const Figures figures{.buffers = table.buffers.size(),
                        .bound = plan.max_live_bytes,
                        .peak = plan.planned_bytes,
                        .capacity = FLAGS_capacity,
                        .seconds = seconds.count()};
  if (!FLAGS_output.empty()) AtomicWriteFile(FLAGS_output, TableWithOffsets(table, plan.offsets));
  std::fputs((FLAGS_json ? Json(figures) : Text(figures)).c_str(), stdout);
  return figures.fits() ? 0 : 1;
}

}  // namespace

Subcommand PlanMemorySubcommand() {
  return {.name = "plan_memory",
          .summary = "assigns offsets in one arena to buffers with known lifetimes",
          .command = {
              .usage = "skiff plan_memory --input=FILE.csv --output=FILE.csv [flags]",
              .summary = "Assigns offsets in one arena to buffers with known lifetimes, from lower "
                         "to just before\nupper, and prints the lower bound (the most bytes live "
                         "at once), the peak and their ratio.",
              .run = Run,
              .flags = {"input", "output", "capacity", "time_limit_s", "alignment", "json"}}};
}

}  // namespace skiff
