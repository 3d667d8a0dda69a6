#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {
namespace {

OpCase GatherCase(const std::string& name, std::vector<Array> x) {
  int64_t all = 0;
  for (const Array& array : x) all += array.shape.element_count();
  return AloneCase("c_all_gather_list", name, std::move(x),
                   {{"parts", std::vector<int64_t>{0, all}}});
}

}  // namespace

void AddCAllGatherListCases(CaseList& cases) {
  cases.push_back(GatherCase("one", {Uniform({5, 7}, 1)}));
  cases.push_back(GatherCase(
      "several", {Uniform({5, 7}, 1), Uniform({}, 2), Uniform({0, 3}, 3), Uniform({131, 257}, 4)}));
  cases.push_back(GatherCase("empty", {Uniform({0, 3}, 1), Uniform({0}, 2)}));
  cases.push_back(GatherCase("int64", {Integers({3, 4}, 1, -9, 9), Integers({2}, 2, -9, 9)}));
}

}  // namespace skiff::harness
