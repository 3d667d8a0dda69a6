#include "tests/operators/math/arg_extreme_reference.h"

namespace skiff::harness {

void AddArgMaxCases(CaseList& cases) { AddArgExtremeCases(cases, "arg_max", /*is_max=*/true); }

}  // namespace skiff::harness
