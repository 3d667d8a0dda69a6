// Runs mutants in processes of their own, so that one that ends its process is found, too.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/mutant_check.h"

namespace skiff::fuzz {

struct FuzzFailure {
  uint64_t mutant = 0;
  std::string what;
};

struct FuzzResult {
  std::vector<FuzzFailure> failures;
  // How many mutants came to an end by MutantReport::End.
  std::array<uint64_t, 5> ends = {};
  // Of messages without numbers and names: a mutant for each, and how many have it.
  using Kinds = std::map<std::string, std::pair<uint64_t, uint64_t>>;
  Kinds unverified;   // MutantReport::unverified
  Kinds only_verify;  // MutantReport::only_verify
};

// Runs the mutants [first, first + count) in `jobs` processes at a time, each with bounds on memory
// and time. Stops after 50 failures.
FuzzResult RunMutants(const std::vector<Seed>& seeds, uint64_t first, uint64_t count, int jobs);

// Returns what is wrong with one mutant, checked in another process; empty: nothing.
std::string FailureOf(const Mutant& mutant);

}  // namespace skiff::fuzz
