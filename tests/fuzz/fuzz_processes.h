// Runs mutants in separate processes, so that a mutant that ends its process is found, too.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/mutant_check.h"

namespace skiff::fuzz {

struct FuzzOptions {
  uint64_t first = 0;  // number of the first mutant
  uint64_t count = 1;
  int jobs = 1;  // processes at a time, at most kMostJobs
};

// Returns what came of the mutant of that number.
using MutantCheck = std::function<MutantReport(uint64_t number)>;

inline constexpr int kMostJobs = 64;
// After that many failures, no other mutant begins.
inline constexpr uint64_t kMostFailures = 50;

struct FuzzFailure {
  uint64_t mutant = 0;
  std::string what;
};

struct FuzzResult {
  std::vector<FuzzFailure> failures;
  // The number of finished mutants, including mutants that ended their process.
  uint64_t tried = 0;
  // How many mutants came to an end by MutantReport::End.
  std::array<uint64_t, 5> ends = {};
  // Of messages without numbers and names: a mutant for each, and how many have it.
  using Kinds = std::map<std::string, std::pair<uint64_t, uint64_t>>;
  Kinds unverified;   // MutantReport::unverified
  Kinds only_verify;  // MutantReport::only_verify
};

// Checks mutants in processes with bounds on memory and time. A signal, an exception or an exit
// that ends such a process before its work is done is a failure of the current mutant. Throws an
// Error for a count below 1, and for jobs below 1 or above kMostJobs.
FuzzResult RunMutants(const MutantCheck& check, const FuzzOptions& options);

// Returns the message without numbers and quoted names, so that messages of the same kind are
// equal.
std::string KindOf(const std::string& message);

// Returns the mistake that a mutant shows, checked in another process; empty: nothing.
std::string FailureOf(const Mutant& mutant);

}  // namespace skiff::fuzz
