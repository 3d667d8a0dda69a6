#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {

void AddCSyncCommStreamCases(CaseList& cases) {
  for (OpCase& made : AloneCases("c_sync_calc_stream")) cases.push_back(std::move(made));
  for (OpCase& made : AloneCases("c_sync_comm_stream")) cases.push_back(std::move(made));
  cases.push_back(
      AloneCase("c_sync_comm_stream", "list", {Uniform({5, 7}, 1), Integers({3}, 2, -9, 9)}));
}

}  // namespace skiff::harness
