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

// What one run has shown. Tensors that a run leaves alone share storage.
struct RunTrace {
  NamedTensors before;  // the scope
  std::vector<Tensor> fetches;
  NamedTensors after;
};

// Does the runs of a workload one by one, on an executor of its own, on the CPU with the default
// registry. The workload outlives it.
class WorkloadRunner {
 public:
  // Compiles every program; what comes out passes the verifier.
  explicit WorkloadRunner(const Workload& workload, const CompileOptions& options = {});

  // The next run; from `start`, if it is given, and else from what the last one has left.
  RunTrace Next(const NamedTensors* start = nullptr);

 private:
  const Workload& workload_;
  Executor executor_;
  std::vector<CompiledProgram> programs_;
  NamedTensors state_;
  size_t runs_ = 0;
};

// All runs.
std::vector<RunTrace> RunWorkload(const Workload& workload, const CompileOptions& options = {});

// One message for each fetch of run `index`, and each variable of the scope after it, that is not
// as expected: "run 2: fetch loss: index [0]: found …". Tolerance 0 asks for equal bits; another
// one is a bound on the root mean square of the difference, relative to that of the expected tensor
// (or to kSmallestTensorSize, if that is greater); integers are then compared alike.
std::vector<std::string> RunDifferences(const Workload& workload, size_t index,
                                        const RunTrace& expected, const RunTrace& found,
                                        double tolerance);
// Those of all runs.
std::vector<std::string> TraceDifferences(const Workload& workload,
                                          const std::vector<RunTrace>& expected,
                                          const std::vector<RunTrace>& found, double tolerance);

// Below this size a tensor counts as zero up to rounding.
inline constexpr double kSmallestTensorSize = 1e-4;

}  // namespace skiff::harness
