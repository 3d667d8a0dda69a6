// Runs a case of an op through all checks that every operator must pass.
//
// For each dtype of the case, checks the reference (or the case's own check), every kernel
// candidate, layout, instruction set and number of threads, in place, default attributes, and
// unknown dims (see op_checks.h); then the gradients (see gradient_check.h). A case in float32 also
// runs in half if the op has a kernel for that (CheckedHalves). All that again for each input that
// may give an attribute which the case sets (SlotDef::attribute).
#pragma once

#include "tests/harness/case_report.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Runs the case. Never throws: every problem is a failure in the report. On a place other than the
// CPU, runs only what has a kernel there.
CaseReport RunCase(const OpRegistry& registry, const OpCase& op_case,
                   const RunnerOptions& options = {});

}  // namespace skiff::harness
