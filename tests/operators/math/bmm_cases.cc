#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays BmmReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  const int64_t m = x.shape[1];
  const int64_t k = x.shape[2];
  const int64_t n = y.shape[2];
  std::vector<double> out;
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += x.values[static_cast<size_t>((b * m + i) * k + p)] *
                 y.values[static_cast<size_t>((b * k + p) * n + j)];
        }
        out.push_back(sum);
      }
    }
  }
  return {{"Out", {Values({x.shape[0], m, n}, out)}}};
}

OpCase BmmCase(const std::string& name, const Shape& x, const Shape& y) {
  return {.name = name,
          .type = "bmm",
          .inputs = {{"X", {Uniform(x, 3)}}, {"Y", {Uniform(y, 4)}}},
          .reference = BmmReference,
          .outputs = {{"Out", 1}},
          .gradients = {"X", "Y"}};
}

}  // namespace

void AddBmmCases(CaseList& cases) {
  cases.push_back(BmmCase("batch", {3, 4, 5}, {3, 5, 2}));
  cases.push_back(BmmCase("one_product", {1, 4, 5}, {1, 5, 2}));
  cases.push_back(BmmCase("several_blocks", {2, 35, 68}, {2, 68, 66}));
  cases.push_back(BmmCase("empty_batch", {0, 4, 5}, {0, 5, 2}));
  cases.push_back(BmmCase("nothing_to_sum", {2, 3, 0}, {2, 0, 2}));
  cases.push_back(BmmCase("attention_96x128x128x64", {96, 128, 128}, {96, 128, 64}));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
