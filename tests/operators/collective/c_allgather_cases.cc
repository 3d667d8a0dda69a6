#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {

void AddCAllgatherCases(CaseList& cases) {
  for (OpCase& made : AloneCases("c_allgather")) {
    // It takes rows.
    if (made.name != "scalar") cases.push_back(std::move(made));
  }
}

}  // namespace skiff::harness
