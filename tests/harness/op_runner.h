// Runs a case of an op: everything that the design asks of an operator, checked in one place.
//
// For each dtype of the case: the reference (or the case's own check), every kernel candidate,
// layout, instruction set and number of threads, in place, default attributes, unknown dims (see
// op_checks.h); then the gradients (see gradient_check.h).
#pragma once

#include "tests/harness/case_report.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Never throws: whatever goes wrong is a failure of the report. On another place than the CPU,
// nothing is run that has no kernel there.
CaseReport RunCase(const OpRegistry& registry, const OpCase& op_case,
                   const RunnerOptions& options = {});

}  // namespace skiff::harness
