// Programs as they are used: several on one scope, run in turns with other feeds and fetches.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "tests/harness/array_tensor.h"

namespace skiff::harness {

struct WorkloadRun {
  size_t program = 0;  // index in Workload::programs
  FeedList feeds;
  FetchList fetches;
};

struct Workload {
  std::string name;
  NamedTensors initial;                    // put into the scope first
  std::shared_ptr<const Program> startup;  // then run, unless nullptr
  std::vector<std::shared_ptr<const Program>> programs;
  std::vector<WorkloadRun> runs;
};

// What the runs of a workload have shown.
struct WorkloadTrace {
  struct Run {
    NamedTensors before;  // the scope
    std::vector<Tensor> fetches;
    NamedTensors after;
  };
  std::vector<Run> runs;
};

// Runs everything on an executor of its own, on the CPU with the default registry. Each compiled
// program passes the verifier. With `restart`, a trace of the same workload, each run starts from
// the scope that the trace's run started from, so that differences don't add up.
WorkloadTrace RunWorkload(const Workload& workload, const CompileOptions& options = {},
                          const WorkloadTrace* restart = nullptr);

// One message for each fetch, and each variable of the scope after a run, that is not as expected:
// "run 2: fetch loss: index [0]: found …". Tolerance 0 asks for equal bits; another one is a bound
// on the root mean square of the difference, relative to that of the expected tensor (or to
// kSmallestTensorSize, if that is greater); integers are then compared alike.
std::vector<std::string> TraceDifferences(const Workload& workload, const WorkloadTrace& expected,
                                          const WorkloadTrace& found, double tolerance);

// Below this size a tensor counts as zero up to rounding.
inline constexpr double kSmallestTensorSize = 1e-4;

}  // namespace skiff::harness
