// Checks that programs compute the same bits however their memory is planned.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "tests/harness/workload.h"

namespace skiff::harness {

// Compile options that plan memory in some way.
struct MemoryChoice {
  std::string name;  // letters, digits and underscores
  CompileOptions options;

  friend std::ostream& operator<<(std::ostream& stream, const MemoryChoice& choice) {
    return stream << choice.name;
  }
};

// No sharing and no recomputation, with guards: the reference for all other choices.
MemoryChoice NoReuse();
// Returns one choice for every policy, for recomputing what can be recomputed, for updates at the
// end, and for instructions in program order; each fills dead memory with NaN.
std::vector<MemoryChoice> MemoryChoices();
// Excludes every fourth variable that all programs of the workload have from sharing memory.
MemoryChoice SkippingChoice(const Workload& workload);
// Recomputes between checkpoints: variables that every training run computes in the forward pass,
// others for each seed. Fusions stay as without checkpoints, and so do the results. Returns nullopt
// if there are no such variables.
std::optional<MemoryChoice> CheckpointChoice(const Workload& workload, uint64_t seed);
// Recomputes for a budget between the least that all runs need and the memory of the runs without
// recomputing. A run that fetches much leaves little to recompute. Returns nullopt if a run has
// several segments: nobody can look at the plans of later ones.
std::optional<MemoryChoice> BudgetChoice(const Workload& workload, uint64_t seed);

// Runs the workload with the choice and compares each run with `without_reuse`, the trace of
// NoReuse(). Returns one message per difference (see workload.h), and one for an Error.
std::vector<std::string> MemoryFaults(const Workload& workload,
                                      const std::vector<RunTrace>& without_reuse,
                                      const MemoryChoice& choice);
// Returns the first few faults of each of MemoryChoices(), after the name of the choice.
std::vector<std::string> FaultsOfEveryMemoryChoice(const Workload& workload);

// Returns a smaller workload that still fails, without the runs, fetches and ops that the failure
// doesn't need: a single run, if a run fails alone. `fails` must be true for `workload`, and false
// for a workload that can't run.
Workload Shrink(const Workload& workload, const std::function<bool(const Workload&)>& fails);
// Returns the programs of a workload as text, and the fetches.
std::string WorkloadText(const Workload& workload);

}  // namespace skiff::harness
