#include "tests/operators/tensor/one_hot_cases.h"

namespace skiff::harness {

void AddOneHotCases(CaseList& cases) {
  cases.push_back(
      OneHotCase("one_hot", "column", Integers({7, 1}, 1, 0, 4), {7}, 4, DType::kFloat32, false));
  cases.push_back(OneHotCase("one_hot", "rank_3", Integers({2, 3, 1}, 2, 0, 4, DType::kInt32),
                             {2, 3}, 4, DType::kInt64, false));
  cases.push_back(OneHotCase("one_hot", "out_of_range", Values({3, 1}, {-1, 4, 2}, DType::kInt64),
                             {3}, 4, DType::kFloat32, true));
}

}  // namespace skiff::harness
