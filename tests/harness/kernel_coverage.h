// Tells which kernels the cases run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/case_report.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns every kernel of the place that RunCase runs for the case, as
// "conv2d_grad/onednn/float32". Runs kernels of the CPU only, so the machine may lack the place.
std::set<std::string> KernelsOfCase(const OpRegistry& registry, const OpCase& op_case,
                                    Place place = Place::Cpu());

// Returns the registered kernels of the place that no case runs, counting neither benchmark cases
// nor kernels that this processor lacks instructions for. For
// float32 and float64 each candidate must run; other dtypes often share code, so it is enough if
// the candidate runs in any of them.
std::vector<std::string> KernelsWithoutCase(const OpRegistry& registry, const CaseList& cases,
                                            Place place = Place::Cpu());

// Returns the kernels of the CPU that take fewer rows in some case, not counting benchmark cases.
RowKernels FindRowKernels(const OpRegistry& registry, const CaseList& cases);

// Returns the kernels that no case checks. What counts as checked is as for KernelsWithoutCase.
std::vector<std::string> RowKernelsWithoutCheck(const RowKernels& kernels);

}  // namespace skiff::harness
