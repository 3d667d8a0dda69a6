#include "tests/operators/tensor/copy_case.h"

namespace skiff::harness {

void AddRnnMemoryHelperCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x) {
    cases.push_back(CopyCase("rnn_memory_helper", name, x));
  };
  add("state", Uniform({2, 17}, 1));
  add("empty", Uniform({0, 3}, 3));
  add("int64", Integers({5}, 4, -9, 9));
}

}  // namespace skiff::harness
