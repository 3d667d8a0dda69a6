#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {

void AddCBroadcastCases(CaseList& cases) {
  for (OpCase& made : AloneCases("c_broadcast")) cases.push_back(std::move(made));
}

}  // namespace skiff::harness
