#include "tests/operators/math/arg_extreme_reference.h"

namespace skiff::harness {

void AddArgMinCases(CaseList& cases) { AddArgExtremeCases(cases, "arg_min", /*is_max=*/false); }

}  // namespace skiff::harness
