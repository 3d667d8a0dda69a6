// The cases of every operator of Skiff. Defined in //tests/operators:all_cases.
#pragma once

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Appends the cases of every family.
void AddAllCases(CaseList& cases);

// All of them, made at the first call.
inline const CaseList& AllCases() {
  static const CaseList& cases = *[] {
    auto* list = new CaseList;
    AddAllCases(*list);
    return list;
  }();
  return cases;
}

}  // namespace skiff::harness
