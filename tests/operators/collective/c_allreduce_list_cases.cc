#include "framework/base/error.h"
#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {

void AddCAllreduceListCases(CaseList& cases) {
  const std::vector<Array> list = {Uniform({5, 7}, 1), Uniform({0}, 2), Uniform({}, 3),
                                   Uniform({131, 257}, 4), Uniform({17}, 5)};
  cases.push_back(AloneCase("c_allreduce_list", "one", {Uniform({5, 7}, 1)}));
  cases.push_back(AloneCase("c_allreduce_list", "many", list, {{"mean", true}}));
  cases.push_back(AloneCase("c_allreduce_list", "flat", list, {{"is_flat", true}}));
  cases.push_back(AloneCase("c_allreduce_list", "fast", list, {{"order", std::string("fast")}}));
  cases.push_back(AloneCase("c_allreduce_list", "nothing", {Uniform({0}, 1), Uniform({2, 0}, 2)}));
  cases.push_back(AloneCase("c_allreduce_list", "integers",
                            {Integers({3, 4}, 1, -9, 9), Integers({5}, 2, -9, 9)}));
  cases.push_back(
      AloneCase("c_allreduce_list", "int32", {Integers({3, 4}, 1, -9, 9, DType::kInt32)}));
  OpCase skipped = AloneCase("c_allreduce_list", "skipped", list);
  skipped.inputs["Skip"] = {Values({1}, {1.0}, DType::kBool)};
  cases.push_back(std::move(skipped));
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<Array> halves;
    for (const Array& array : list) halves.push_back(Values(array.shape, array.values, half));
    cases.push_back(AloneCase("c_allreduce_list", StrCat(half), halves));
    OpCase wide = AloneCase("c_allreduce_list", StrCat(half, "_to_float32"), halves,
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
