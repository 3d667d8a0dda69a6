// Workloads: several programs on one scope, run alternately with different feeds and fetches.
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
  std::shared_ptr<const Program> startup;  // run next, unless nullptr
  std::vector<std::shared_ptr<const Program>> programs;
  std::vector<WorkloadRun> runs;
};

// The trace of one run. Tensors that a run doesn't change share storage.
struct RunTrace {
  NamedTensors before;  // the scope
  std::vector<Tensor> fetches;
  NamedTensors after;
};

// Where a workload runs.
struct WorkloadPlace {
  Place place = Place::Cpu();
  const OpRegistry* registry = nullptr;  // nullptr: the default one
};

// Executes the runs of a workload one by one, on its own executor. The workload must outlive it.
class WorkloadRunner {
 public:
  // Compiles every program and verifies the results.
  explicit WorkloadRunner(const Workload& workload, const CompileOptions& options = {},
                          const WorkloadPlace& where = {});

  // Executes the next run, from state `start` if given, else from the state that the last run left.
  RunTrace Next(const NamedTensors* start = nullptr);

 private:
  const Workload& workload_;
  Executor executor_;
  std::vector<CompiledProgram> programs_;
  NamedTensors state_;
  size_t runs_ = 0;
};

// Executes all runs.
std::vector<RunTrace> RunWorkload(const Workload& workload, const CompileOptions& options = {},
                                  const WorkloadPlace& where = {});

// Returns one message for each fetch of run `index`, and each scope variable after it, that isn't
// as expected: "run 2: fetch loss: index [0]: found …". Tolerance 0 requires equal bits. Any other
// tolerance bounds the root mean square of the difference, relative to the tensor's size: the root
// mean square of the expected tensor, kSmallestTensorSize, or, for gradients and optimizer states
// collected from gradients, kSmallestGradientSize times the root mean square of the largest tensor
// of the kind in the run, whichever is greatest. Integers are then compared the same way.
std::vector<std::string> RunDifferences(const Workload& workload, size_t index,
                                        const RunTrace& expected, const RunTrace& found,
                                        double tolerance);
// Returns the differences of all runs.
std::vector<std::string> TraceDifferences(const Workload& workload,
                                          const std::vector<RunTrace>& expected,
                                          const std::vector<RunTrace>& found, double tolerance);

// A tensor with a smaller root mean square counts as zero up to rounding.
inline constexpr double kSmallestTensorSize = 1e-4;
// So does a gradient that is so much smaller than other gradients of the run. Where terms cancel,
// such a gradient holds only rounding errors: a bias of the keys of an attention adds the same to
// all scores of a row, so its gradient is 0. Of terms of size 1, that rounding is about 6e-8 in
// float32, which a tolerance of 1e-5 allows from 6e-3 on.
inline constexpr double kSmallestGradientSize = 1e-2;

}  // namespace skiff::harness
