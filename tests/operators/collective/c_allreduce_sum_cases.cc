#include "framework/base/error.h"
#include "tests/operators/collective/alone_case.h"

namespace skiff::harness {
namespace {

// With or without `mean`, and whatever Skip says, a single rank gets X.
OpCase AllreduceSumOfOne(const std::string& name, AttributeMap attrs, bool skip) {
  OpCase made =
      AloneCase("c_allreduce_sum", StrCat(name, "_skip_", skip), {Uniform({5, 7}, 1)}, attrs);
  made.inputs["Skip"] = {Values({1}, {skip ? 1.0 : 0.0}, DType::kBool)};
  return made;
}

}  // namespace

void AddCAllreduceSumCases(CaseList& cases) {
  for (OpCase& made : AloneCases("c_allreduce_sum")) cases.push_back(std::move(made));
  for (const bool skip : {false, true}) {
    cases.push_back(AllreduceSumOfOne("mean", {{"mean", true}}, skip));
    cases.push_back(
        AllreduceSumOfOne("fast", {{"order", std::string("fast")}, {"mean", true}}, skip));
  }
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    for (const int32_t out : {-1, static_cast<int32_t>(half), 5}) {
      OpCase made =
          AloneCase("c_allreduce_sum", StrCat(half, "_to_", out),
                    {Values({131, 67}, Uniform({131, 67}, 1).values, half)}, {{"out_dtype", out}});
      if (out == 5) {
        made.reference = [](const Arrays& inputs) {
          Array sum = inputs.at("X")[0];
          sum.dtype = DType::kFloat32;
          return Arrays{{"Out", {sum}}};
        };
      }
      cases.push_back(std::move(made));
    }
  }
}

}  // namespace skiff::harness
