#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddRnnMemoryHelperCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x) {
    OpCase made{.name = name,
                .type = "rnn_memory_helper",
                .inputs = {{"X", {x}}},
                .reference =
                    [](const Arrays& inputs) {
                      return Arrays{{"Out", inputs.at("X")}};
                    },
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    cases.push_back(std::move(made));
  };
  add("state", Uniform({2, 17}, 1));
  add("empty", Uniform({0, 3}, 3));
  add("int64", Integers({5}, 4, -9, 9));
}

}  // namespace skiff::harness
