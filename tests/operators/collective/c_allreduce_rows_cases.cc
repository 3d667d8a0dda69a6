#include <algorithm>

#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"

namespace skiff::harness {
namespace {

// The different rows, then unused slots, as many as the table has rows in all.
Arrays AllreduceRowsOfOne(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array merged = Merged(x);
  Shape shape = x.shape;
  shape[0] = x.height;
  Array out = SelectedRows(
      Values(shape, std::vector<double>(static_cast<size_t>(shape.element_count()), 0.0)),
      std::vector<int64_t>(static_cast<size_t>(x.height), -1), x.height);
  const auto rows = std::min(merged.rows.size(), out.rows.size());
  std::copy_n(merged.rows.begin(), rows, out.rows.begin());
  const size_t numbers = std::min(merged.values.size(), out.values.size());
  std::copy_n(merged.values.begin(), numbers, out.values.begin());
  out.fixed_dtype = x.fixed_dtype;
  return {{"Out", {out}}};
}

}  // namespace

void AddCAllreduceRowsCases(CaseList& cases) {
  for (const auto& [kind, x] : SelectedRowsOfAllKinds()) {
    OpCase made{.name = kind,
                .type = "c_allreduce_rows",
                .inputs = {{"X", {x}}},
                .reference = AllreduceRowsOfOne,
                .outputs = {{"Out", 1}}};
    cases.push_back(made);
    made.name += "_mean";
    made.attrs = {{"mean", true}};
    made.inputs["Skip"] = {Values({1}, {1.0}, DType::kBool)};
    cases.push_back(std::move(made));
  }
}

}  // namespace skiff::harness
