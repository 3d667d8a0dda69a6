// Whether programs compute the same, to the bit, however their memory is planned.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "tests/harness/workload.h"

namespace skiff::harness {

// A way to plan memory.
struct MemoryChoice {
  std::string name;  // letters, digits and underscores
  CompileOptions options;
};

// A place of its own for each value, and nothing computed again: what the others are held against.
MemoryChoice NoReuse();
// Every policy, what can be recomputed, and updates at the end, each with dead memory full of NaN.
std::vector<MemoryChoice> MemoryChoices();
// Every fourth variable that all programs of the workload have shares memory with nothing.
MemoryChoice SkippingChoice(const Workload& workload);

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
