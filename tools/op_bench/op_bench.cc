// Times operators on the cases of the tests and on those that exist only for the benchmark:
//
//   op_bench --op=conv2d --threads=2
//   op_bench --op=matmul_v2 --case=square_1024 --dtype=float64 --candidate=plain --json
//   op_bench --op=conv2d --gradient
//   op_bench --memory --threads=2
//   op_bench --device=cuda --benchmark_only
//   op_bench --device=cuda --memory
#include <gflags/gflags.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "framework/op/registry.h"
#include "memory/places.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_op.h"
#include "tools/op_bench/memory_cases.h"
#include "tools/op_bench/op_timing.h"
#include "tools/op_bench/triad.h"

DEFINE_string(op, "", "Op type; empty: all.");
DEFINE_string(case, "", "Name of a case; empty: all cases of the ops.");
DEFINE_string(dtype, "float32", "Dtype of the run; cases without it are left out.");
DEFINE_string(candidate, "", "Kernel candidate; empty: the one that the registry chooses.");
DEFINE_string(device, "cpu",
              "cpu, cuda, or cuda:1 for the second of several devices. On a device, ops without a "
              "kernel there are left out, and a run lasts until the device has finished.");
DEFINE_int32(threads, 0, "Threads; 0: OpenMP's default.");
DEFINE_double(seconds, 0.2, "Least measured time per case.");
DEFINE_bool(gradient, false,
            "Time the gradient ops of the chosen cases, for the inputs whose gradients the tests "
            "check, or else all floats; ops without a gradient are left out.");
DEFINE_bool(benchmark_only, false, "Only the cases that exist only for the benchmark.");
DEFINE_bool(memory, false,
            "Time memory-bound ops on arrays of 64 MiB, and on the CPU print the share of the "
            "bandwidth of a = b + 3 c that each reaches. (On a device, assign shows the bandwidth "
            "of a copy.)");
DEFINE_bool(json, false, "Print one line with a JSON object per case.");

namespace skiff {
namespace {

Place ChosenPlace() {
  const Place place = Place::FromName(FLAGS_device);
  AllocatorOf(place);  // throws an Error here, rather than in each case, if there is no such place
  SKIFF_ENFORCE(place.is_cpu() || !FLAGS_gradient, kInvalidArgument,
                "--gradient runs on the CPU only");
  return place;
}

bool HasKernel(const harness::OpCase& op_case, Place place) {
  const std::vector<KernelDef>& kernels = DefaultOpRegistry().Kernels(op_case.type);
  return (place.is_cpu() || !harness::HasSelectedRows(op_case)) &&
         std::ranges::count(kernels, place.kind, &KernelDef::place) > 0;
}

bool IsChosen(const harness::OpCase& op_case, DType dtype) {
  const bool has_dtype = std::count(op_case.dtypes.begin(), op_case.dtypes.end(), dtype) > 0;
  const bool has_gradient = DefaultOpRegistry().Get(op_case.type).grad != nullptr;
  return has_dtype && (has_gradient || !FLAGS_gradient) &&
         (FLAGS_op.empty() || op_case.type == FLAGS_op) &&
         (FLAGS_case.empty() || op_case.name == FLAGS_case) &&
         (!FLAGS_benchmark_only || op_case.benchmark_only);
}

// 0 if the clock couldn't measure the run.
double GigaPerSecond(double count, double seconds) {
  return seconds > 0 ? count / seconds * 1e-9 : 0.0;
}

double BytesPerSecond(const OpTiming& timing) {
  return static_cast<double>(timing.bytes) / timing.median_seconds;
}

// `triad` is in bytes per second; 0 if it wasn't measured.
void PrintJson(const OpTiming& timing, double triad) {
  nlohmann::json line = {
      {"op", timing.type},
      {"case", timing.name},
      {"dtype", FLAGS_dtype},
      {"device", FLAGS_device},
      {"candidate", timing.candidate},
      {"threads", omp_get_max_threads()},
      {"runs", timing.runs},
      {"median_microseconds", timing.median_seconds * 1e6},
      {"bytes", timing.bytes},
      {"workspace_bytes", timing.workspace_bytes},
      {"gigabytes_per_second",
       GigaPerSecond(static_cast<double>(timing.bytes), timing.median_seconds)},
  };
  if (timing.flop) {
    line["gigaflops_per_second"] = GigaPerSecond(*timing.flop, timing.median_seconds);
  }
  if (triad > 0) {
    line["triad_gigabytes_per_second"] = triad * 1e-9;
    line["share_of_triad"] = BytesPerSecond(timing) / triad;
  }
  std::cout << line.dump() << std::endl;
}

void PrintRow(const OpTiming& timing, double triad) {
  std::printf("%-60s %-12s %12.2f us %9.2f GB/s", (timing.type + "/" + timing.name).c_str(),
              timing.candidate.c_str(), timing.median_seconds * 1e6,
              GigaPerSecond(static_cast<double>(timing.bytes), timing.median_seconds));
  if (timing.flop) {
    std::printf(" %9.2f GFLOP/s", GigaPerSecond(*timing.flop, timing.median_seconds));
  }
  if (timing.workspace_bytes > 0) {
    std::printf(" %9.3f MiB scratch", static_cast<double>(timing.workspace_bytes) / (1 << 20));
  }
  if (triad > 0) std::printf(" %5.0f %% of triad", 100 * BytesPerSecond(timing) / triad);
  std::printf("\n");
}

void TimeAndPrint(const harness::OpCase& op_case, const TimingOptions& options) {
  const std::vector<OpTiming> timings =
      FLAGS_gradient ? TimeGradients(DefaultOpRegistry(), op_case, options)
                     : std::vector<OpTiming>{TimeCase(DefaultOpRegistry(), op_case, options)};
  // Measured anew beside each case, since the load of a shared machine changes.
  const double triad = FLAGS_memory && options.place.is_cpu() ? MeasureTriad() : 0;
  for (const OpTiming& timing : timings) {
    FLAGS_json ? PrintJson(timing, triad) : PrintRow(timing, triad);
  }
}

int TimeChosenCases() {
  if (FLAGS_threads > 0) omp_set_num_threads(FLAGS_threads);
  const TimingOptions options{.place = ChosenPlace(),
                              .dtype = DTypeFromName(FLAGS_dtype),
                              .candidate = FLAGS_candidate,
                              .least_seconds = FLAGS_seconds};
  harness::CaseList cases;
  if (FLAGS_memory) {
    cases = MemoryCases();
  } else {
    harness::AddAllCases(cases);
  }
  size_t timed = 0;
  size_t failed = 0;
  for (harness::OpCase& listed : cases) {
    if (!IsChosen(listed, options.dtype) || !HasKernel(listed, options.place)) continue;
    // Moved, so that the values of a large case are freed when it is done.
    const harness::OpCase op_case = std::move(listed);
    // A case that fails, for lack of memory for example, doesn't end the others.
    try {
      TimeAndPrint(op_case, options);
      ++timed;
    } catch (const Error& error) {
      std::cerr << harness::CaseName(op_case) << ": " << error.what() << "\n";
      ++failed;
    }
  }
  SKIFF_ENFORCE(timed + failed > 0, kNotFound, "no case of op \"", FLAGS_op, "\", name \"",
                FLAGS_case, "\" and dtype ", FLAGS_dtype,
                FLAGS_gradient ? " that has a gradient" : "");
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "op_bench --op=conv2d [flags]",
                             .summary = "Times operators on their cases.",
                             .run = skiff::TimeChosenCases});
}
