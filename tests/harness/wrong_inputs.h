// What gradient ops do with inputs that don't fit each other. A gradient comes from whoever wrote
// the program: of another shape or dtype than its forward output, it must not reach a kernel.
#pragma once

#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Gives the gradient ops of every case, one input at a time, other dims, another rank and another
// dtype than the forward op leads to. One message for each that shape rule and choice of a kernel
// accept all the same, as "mean: its gradient op accepts Out@GRAD of other rank", unless a case of
// the op lists it (OpCase::accepted_wrong_inputs); and one for each that a case lists without a
// reason, or though the gradient op refuses it. Runs no kernel. Gradient ops that are no op of
// their own (the scale of sum, the concat of split) and those of one input, which nothing
// contradicts, are left out.
std::vector<std::string> WrongInputProblems(const OpRegistry& registry, const CaseList& cases);

}  // namespace skiff::harness
