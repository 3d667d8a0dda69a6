// Random programs that run, train and contain everything that may trip up a pass.
#pragma once

#include <cstdint>

#include "framework/op/registry.h"
#include "framework/precision/precision_options.h"
#include "tests/harness/op_case.h"
#include "tests/harness/workload.h"

namespace skiff::harness {

struct RandomWorkloadOptions {
  int ops = 14;  // drawn from the cases; other ops fit values to them
  // Omits ops without a gradient and fetches only floats, so that a rounding error anywhere stays a
  // small error everywhere. Omits cases with infinite numbers or NaN: kernels that multiply a tap
  // by the zeros around an image, and kernels that leave the zeros out, then agree.
  bool smooth = false;
  // With bfloat16 or float16, floats are float32, and the programs are rewritten to half. Ops of
  // the startup program then make the first values of parameters.
  PrecisionOptions precision = {};
};

// Returns a workload that depends only on seed, options and cases.
//
// Ops and attributes come from the cases, so a new op with a case takes part, except those with
// selected rows; all gradients are dense. Inputs are feeds, parameters, or results of earlier ops,
// squashed into the range of the case's values if the range is one-sided. Element-wise ops take any
// shape. Some ops are in loops and branches, which may be nested. Where no gradient op needs the
// old value, an op may overwrite a variable, including its own inputs and variables in the scope;
// some scope variables are written but never trained. Most programs are differentiated and trained
// by some optimizer, some of them in rounds of two steps and with averages of the parameters, and
// have an evaluation clone that runs between training steps. Each run has different feeds. The
// fetches differ from run to run, and some are repeated.
Workload RandomWorkload(const OpRegistry& registry, const CaseList& cases, uint64_t seed,
                        const RandomWorkloadOptions& options = {});

}  // namespace skiff::harness
