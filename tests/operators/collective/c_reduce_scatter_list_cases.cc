#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {
namespace {

OpCase ScatterCase(const std::string& name, std::vector<Array> x, AttributeMap attrs = {}) {
  int64_t all = 0;
  for (const Array& array : x) all += array.shape.element_count();
  attrs["parts"] = std::vector<int64_t>{0, all};
  return AloneCase("c_reduce_scatter_list", name, std::move(x), std::move(attrs));
}

}  // namespace

void AddCReduceScatterListCases(CaseList& cases) {
  const std::vector<Array> list = {Uniform({5, 7}, 1), Uniform({0}, 2), Uniform({}, 3),
                                   Uniform({131, 257}, 4)};
  cases.push_back(ScatterCase("one", {Uniform({5, 7}, 1)}));
  cases.push_back(ScatterCase("many", list, {{"mean", true}, {"is_flat", true}}));
  cases.push_back(ScatterCase("nothing", {Uniform({0}, 1), Uniform({2, 0}, 2)}));
  cases.push_back(ScatterCase("int64", {Integers({3, 4}, 1, -9, 9), Integers({5}, 2, -9, 9)}));
  cases.push_back(ScatterCase("int32", {Integers({3, 4}, 1, -9, 9, DType::kInt32)}));
  OpCase skipped = ScatterCase("skipped", list);
  skipped.inputs["Skip"] = {Values({1}, {1.0}, DType::kBool)};
  cases.push_back(std::move(skipped));
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<Array> halves;
    for (const Array& array : list) halves.push_back(Values(array.shape, array.values, half));
    OpCase wide = ScatterCase(half == DType::kFloat16 ? "float16" : "bfloat16", halves,
                              {{"out_dtype", int32_t{5}}});
    wide.reference = [](const Arrays& inputs) {
      Arrays outputs{{"Out", inputs.at("X")}};
      for (Array& sum : outputs.at("Out")) sum.dtype = DType::kFloat32;
      return outputs;
    };
    cases.push_back(std::move(wide));
  }
}

}  // namespace skiff::harness
