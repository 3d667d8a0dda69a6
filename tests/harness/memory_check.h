// Whether programs compute the same, to the bit, however their memory is planned.
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

// A way to plan memory.
struct MemoryChoice {
  std::string name;  // letters, digits and underscores
  CompileOptions options;

  friend std::ostream& operator<<(std::ostream& stream, const MemoryChoice& choice) {
    return stream << choice.name;
  }
};

// A place of its own for each value, and nothing computed again: what the others are held against.
MemoryChoice NoReuse();
// Every policy, what can be recomputed, updates at the end, and instructions in the order of the
// program, each with dead memory full of NaN.
std::vector<MemoryChoice> MemoryChoices();
// Every fourth variable that all programs of the workload have shares memory with nothing.
MemoryChoice SkippingChoice(const Workload& workload);
// Recomputes between checkpoints: some variables that every training run computes in the forward
// pass, others for another seed. None, if there are no such variables. Fusions are as without
// checkpoints, so that results are as well.
std::optional<MemoryChoice> CheckpointChoice(const Workload& workload, uint64_t seed);
// Recomputes for a budget from the least that all runs can do with to what they take if nothing is
// recomputed. Who fetches much leaves little to recompute.
MemoryChoice BudgetChoice(const Workload& workload, uint64_t seed);

// Runs the workload with the choice and compares each run with those of NoReuse(): one message for
// each difference (see workload.h), and for an Error.
std::vector<std::string> MemoryFaults(const Workload& workload,
                                      const std::vector<RunTrace>& without_reuse,
                                      const MemoryChoice& choice);
// Those of all MemoryChoices(), with the name of the choice in front. Of each the first few.
std::vector<std::string> FaultsOfEveryMemoryChoice(const Workload& workload);

// A smaller workload that fails as well: of the runs, fetches and ops, those are left out that
// aren't needed for that. `fails` must be true of `workload`, and false of one that can't run.
Workload Shrink(const Workload& workload, const std::function<bool(const Workload&)>& fails);
// Its programs as text, and what is fetched.
std::string WorkloadText(const Workload& workload);

}  // namespace skiff::harness
