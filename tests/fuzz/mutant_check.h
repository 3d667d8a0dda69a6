// Runs a mutant of a program everywhere, and reports mistakes.
#pragma once

#include <string>

#include "framework/op/registry.h"
#include "tests/fuzz/program_mutation.h"

namespace skiff::fuzz {

struct MutantReport {
  // The first stage that refused the mutant, or kComputed.
  enum class End { kCodec, kVerify, kCompile, kRun, kComputed };
  End end = End::kComputed;
  // The refusal in compiling or binding, of a program that verifies without a message and whose
  // feeds are unchanged; empty: nothing. A kind that isn't known is a problem, too.
  std::string unverified = {};
  // What VerifyProgram says first of a program that computes; empty: it says nothing, or the
  // program doesn't compute.
  std::string only_verify = {};
  // A mistake of Skiff; empty: none.
  std::string problem = {};
};

// The program goes to bytes and text and back, is verified, compiled, and runs twice between guards
// (MemoryOptions::guards) for its exact rows, then with reuse and dead memory full of NaN. Feeds
// and variables lie between guards, too, so that a kernel that leaves its arguments ends the
// process. Problems are another exception than an Error; a difference between the two ways in a
// fetch, an array, a variable of the scope, or whether a run throws; a run that throws and yet
// changes the scope, or that spoils the next run; what VerifyProgram should have refused; and a
// lack of memory in verifying or lowering, which SmallMemory bounds.
MutantReport CheckMutant(const Mutant& mutant, const OpRegistry& registry = DefaultOpRegistry());

// Returns the program, the feeds, and the changes.
std::string MutantText(const Mutant& mutant);

}  // namespace skiff::fuzz
