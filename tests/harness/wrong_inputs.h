// Tests gradient ops with inputs that don't fit each other. Programs come from files, which may
// contain any gradient ops; a gradient with another shape or dtype than its forward output must not
// reach a kernel.
#pragma once

#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Gives the gradient ops of every case, one input at a time, other dims, another rank and another
// dtype than the forward op implies. Returns a message, such as "mean: its gradient op accepts
// Out@GRAD of other rank", for each wrong input that the shape rule and kernel selection accept,
// unless a case of the op lists it (OpCase::accepted_wrong_inputs); and one for each that a case
// lists without a reason or although the gradient op rejects it. Runs no kernel. Omits gradient ops
// that are also ops by themselves (the scale of sum, the concat of split) and those with a single
// input, which nothing can contradict.
std::vector<std::string> WrongInputProblems(const OpRegistry& registry, const CaseList& cases);

// Returns a message for each gradient that an op reads and no check compares with the gradient's
// variable: the op doesn't read the variable, so InferOutputs can't compare, and no case makes an
// op of this type read the gradient, so neither WrongInputProblems nor CheckPerturbations finds out
// whether the op's rule compares.
std::vector<std::string> UncheckedGradients(const OpRegistry& registry, const CaseList& cases);

}  // namespace skiff::harness
