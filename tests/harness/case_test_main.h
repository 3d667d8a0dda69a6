// The main program of the tests of a family of ops.
#pragma once

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Runs each case (but those for the benchmark alone) as the GoogleTest test <op type>.<case name>,
// in order. Returns the exit code of the program.
int RunCaseTests(int* argc, char** argv, const OpRegistry& registry, const CaseList& cases);

}  // namespace skiff::harness
