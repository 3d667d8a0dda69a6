#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

// `starts`: empty for none.
OpCase TokenPositionsCase(const std::string& name, const Array& x,
                          const std::vector<double>& starts) {
  OpCase op_case{.name = name,
                 .type = "token_positions",
                 .inputs = {{"X", {x}}},
                 .attrs = {{"limit", 10000}},
                 .outputs = {{"Out", 1}}};
  const int64_t sequences = x.shape[0];
  if (!starts.empty()) op_case.inputs["Start"] = {Values({sequences}, starts, DType::kInt64)};
  op_case.reference = [=, tokens = x.shape[1]](const Arrays&) {
    std::vector<double> positions;
    for (int64_t n = 0; n < sequences; ++n) {
      const double start = starts.empty() ? 0 : starts[static_cast<size_t>(n)];
      for (int64_t i = 0; i < tokens; ++i) positions.push_back(start + static_cast<double>(i));
    }
    return Arrays{{"Out", {Values({sequences, tokens}, positions, DType::kInt64)}}};
  };
  return op_case;
}

}  // namespace

void AddTokenPositionsCases(CaseList& cases) {
  cases.push_back(TokenPositionsCase("ids", Integers({2, 5}, 1, 0, 9), {}));
  cases.push_back(TokenPositionsCase("ids_after_others", Integers({3, 4}, 1, 0, 9), {7, 0, 100}));
  cases.push_back(TokenPositionsCase("vectors", Uniform({2, 3, 4}, 1), {1, 9997}));
  cases.push_back(TokenPositionsCase("one_token", Integers({2, 1}, 1, 0, 9), {9999, 3}));
  cases.push_back(TokenPositionsCase("no_tokens", Integers({2, 0}, 1, 0, 9), {3, 10000}));
  cases.push_back(TokenPositionsCase("no_sequences", Integers({0, 3}, 1, 0, 9), {}));
  cases.push_back(
      TokenPositionsCase("several_threads", Integers({7, 9001}, 1, 0, 9), {0, 1, 2, 3, 4, 5, 999}));
  cases.push_back(TokenPositionsCase("of_any_length", Integers({2, 5}, 1, 0, 9), {0, 20000}));
  cases.back().attrs.clear();
}

}  // namespace skiff::harness
