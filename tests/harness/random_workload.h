// Programs that mean nothing, but run, train and have everything that a pass may stumble over.
#pragma once

#include <cstdint>

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"
#include "tests/harness/workload.h"

namespace skiff::harness {

struct RandomWorkloadOptions {
  int ops = 14;  // drawn from the cases; others fit values to them
  // Leaves out ops without a gradient and fetches floats only, so that a rounding error somewhere
  // stays a small error everywhere.
  bool smooth = false;
};

// The same workload for the same seed, options and cases.
//
// Ops and attributes come from the cases, so a new op with a case takes part; those with selected
// rows are left out, and all gradients are dense. Inputs are feeds, parameters, or what earlier ops
// wrote, squashed into the range of the case's values where these are one-sided. Element-wise ops
// take any shape. Where no gradient op needs the old value, an op may overwrite a variable, also
// one that it reads or that lies in the scope; some variables of the scope are written and never
// trained. Most programs are differentiated and trained by some optimizer, some of them in rounds
// of two steps and with averages of the parameters, and have an evaluation clone that runs between
// training steps. Each run is fed other values; what is fetched differs
// from run to run, and repeats.
Workload RandomWorkload(const OpRegistry& registry, const CaseList& cases, uint64_t seed,
                        const RandomWorkloadOptions& options = {});

}  // namespace skiff::harness
