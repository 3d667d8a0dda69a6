// Random programs on ragged feeds: sequence operators, recurrences, lookups, with gradients.
#pragma once

#include <cstdint>

#include "framework/op/registry.h"
#include "framework/precision/precision_options.h"
#include "tests/harness/workload.h"

namespace skiff::harness {

struct RandomRaggedOptions {
  int layers = 10;  // drawn; others read the feeds and make the loss
  // With bfloat16 or float16, the programs are rewritten to half.
  PrecisionOptions precision = {};
};

// Returns a workload that depends only on seed, options and which operators the registry has.
//
// Its programs read two ragged feeds of ids, whose sequences have different lengths, a third one
// with two levels, and a label for each triple. Layers on rows keep their LoD, join, repeat or pool
// the sequences, expand pooled sequences to rows again, or split each row into several. In some
// programs there are values whose shapes depend on data. All values lead to the loss; the program
// is trained by some optimizer, and has an evaluation clone. The runs are long, short, and long
// again; one has sequences of equal lengths, another a single sequence, a third empty sequences.
// The fetches differ from run to run.
Workload RandomRaggedWorkload(const OpRegistry& registry, uint64_t seed,
                              const RandomRaggedOptions& options = {});

}  // namespace skiff::harness
