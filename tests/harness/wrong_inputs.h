// What gradient ops do with inputs that don't fit each other. A gradient comes from whoever wrote
// the program: of another shape or dtype than its forward output, it must not reach a kernel.
#pragma once

#include <set>
#include <string>

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Gives the gradient ops of every case, one input at a time, other dims, another rank and another
// dtype than the forward op leads to. Returns what shape rule and choice of a kernel accept all the
// same, as "mean_grad Out@GRAD: other rank". Runs no kernel. Gradient ops that are no op of their
// own (the scale of sum, the concat of split) and those of one input, which nothing contradicts,
// are left out.
std::set<std::string> AcceptedWrongInputs(const OpRegistry& registry, const CaseList& cases);

}  // namespace skiff::harness
