#include <string>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {
namespace {

OpCase WhereCase(const std::string& name, Array x, Array y) {
  const Array condition = Integers(x.shape, 77, 0, 2, DType::kBool);
  OpCase result{
      .name = name,
      .type = "where",
      .inputs = {{"Condition", {condition}}, {"X", {std::move(x)}}, {"Y", {std::move(y)}}},
      .reference =
          [](const Arrays& inputs) {
            Array out = inputs.at("X")[0];
            for (size_t i = 0; i < out.values.size(); ++i) {
              if (inputs.at("Condition")[0].values[i] == 0)
                out.values[i] = inputs.at("Y")[0].values[i];
            }
            return Arrays{{"Out", {out}}};
          },
      .outputs = {{"Out", 1}}};
  return result;
}

}  // namespace

void AddWhereCases(CaseList& cases) {
  uint64_t seed = 1;
  for (const auto& [name, shape] : UnaryShapes()) {
    OpCase one = WhereCase(name, Uniform(shape, seed, -1, 1), Uniform(shape, seed + 1, -1, 1));
    one.gradients = {"X", "Y"};
    cases.push_back(std::move(one));
    seed += 2;
  }
  cases.push_back(WhereCase("several_threads", Uniform({70003}, seed), Uniform({70003}, seed + 1)));
  for (const DType dtype : {DType::kBool, DType::kInt32, DType::kInt64}) {
    const int64_t high = dtype == DType::kBool ? 2 : 90;
    cases.push_back(WhereCase(std::string(DTypeName(dtype)), Integers({5, 7}, 31, 0, high, dtype),
                              Integers({5, 7}, 32, 0, high, dtype)));
  }
  OpCase large = WhereCase("4M_elements", Uniform({1024, 4096}, 33), Uniform({1024, 4096}, 34));
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
