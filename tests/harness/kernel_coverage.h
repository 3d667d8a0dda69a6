// Which kernels the cases run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// "conv2d_grad/onednn/float32" of every kernel of the place that RunCase runs for the case. Runs
// kernels of the CPU only, so the place needn't be there.
std::set<std::string> KernelsOfCase(const OpRegistry& registry, const OpCase& op_case,
                                    Place place = Place::Cpu());

// The registered kernels of the place that no case runs, benchmarks left out. For float32 and
// float64 each candidate must have run; for other dtypes, which are often the same code, it is
// enough if the candidate has run in any.
std::vector<std::string> KernelsWithoutCase(const OpRegistry& registry, const CaseList& cases,
                                            Place place = Place::Cpu());

}  // namespace skiff::harness
