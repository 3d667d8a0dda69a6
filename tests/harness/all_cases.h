// The cases of every operator of Skiff. Defined in //tests/operators:all_cases.
#pragma once

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Appends the cases of every family.
void AddAllCases(CaseList& cases);

}  // namespace skiff::harness
