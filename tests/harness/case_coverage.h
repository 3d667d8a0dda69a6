// Checks that every operator of a registry is documented, runs on the CPU and is tested.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns one message for each missing thing, starting with the op's type. An op must have
// documentation for itself, its slots and its attributes; defaults of the declared type; facts that
// name slots it has; a CPU kernel; a gradient rule, which a case checks, or a reason for having
// none; and a case of its own, or a case of another op whose checked gradient runs the op.
//
// `without_case` lists ops that need no case, with reasons. A case may say why none checks the
// gradient rule (OpCase::unchecked_gradient). Needless excuses, excuses for an op that doesn't
// exist, and two cases with the same name are problems as well.
std::vector<std::string> CoverageProblems(const OpRegistry& registry, const CaseList& cases,
                                          const std::map<std::string, std::string>& without_case);

}  // namespace skiff::harness
