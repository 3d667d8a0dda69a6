#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {

void AddCAllreduceMaxCases(CaseList& cases) {
  for (OpCase& made : AloneCases("c_allreduce_max")) cases.push_back(std::move(made));
}

}  // namespace skiff::harness
