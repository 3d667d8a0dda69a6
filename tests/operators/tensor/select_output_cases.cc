#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddSelectOutputCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, int count, int mask) {
    cases.push_back(
        {.name = name,
         .type = "select_output",
         .inputs = {{"X", {x}}, {"Mask", {Integers({1}, 1, mask, mask + 1, DType::kInt32)}}},
         .reference =
             [count, mask](const Arrays& inputs) {
               Arrays outputs;
               for (int i = 0; i < count; ++i) {
                 Array out = inputs.at("X")[0];
                 if (i != mask) out.values.assign(out.values.size(), 0.0);
                 outputs["Out"].push_back(out);
               }
               return outputs;
             },
         .outputs = {{"Out", count}},
         .gradients = {"X"}});
  };
  add("first", Uniform({2, 3}, 1), 2, 0);
  add("last", Uniform({4}, 2), 3, 2);
}

}  // namespace skiff::harness
