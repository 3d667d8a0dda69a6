#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {

void AddCReducescatterCases(CaseList& cases) {
  for (OpCase& made : AloneCases("c_reducescatter")) {
    // It takes rows.
    if (made.name != "scalar") cases.push_back(std::move(made));
  }
}

}  // namespace skiff::harness
