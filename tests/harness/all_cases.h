// The cases of every operator of Skiff. AddAllCases is defined in //tests/operators:all_cases.
#pragma once

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Appends the cases of every family.
void AddAllCases(CaseList& cases);

// Returns all of them. The first call makes the list.
inline const CaseList& AllCases() {
  static const CaseList& cases = *[] {
    auto* list = new CaseList;
    AddAllCases(*list);
    return list;
  }();
  return cases;
}

}  // namespace skiff::harness
