#include "tests/harness/op_case.h"
#include "tests/operators/tensor/looked_up.h"

namespace skiff::harness {
namespace {

Arrays LookupTableRows(const Arrays& inputs, double padding) {
  Shape shape = inputs.at("Ids")[0].shape;
  shape[shape.rank() - 1] = inputs.at("W")[0].shape[1];
  return {{"Out", {LookedUp(inputs, padding, shape)}}};
}

// The gradient op: slot i is row Ids[i] with the values Out@GRAD[i, :].
OpCase SparseLookupTableGradient() {
  constexpr int64_t kWidth = 5;
  return {.name = "sparse",
          .type = "lookup_table_grad",
          .inputs = {{"Ids", {Values({4, 1}, {3, 0, 3, 1}, DType::kInt64)}},
                     {"W", {Uniform({6, kWidth}, 11)}},
                     {"Out@GRAD", {Uniform({4, kWidth}, 12)}}},
          .attrs = {{"padding_idx", int64_t{1}}, {"is_sparse", true}},
          .reference =
              [](const Arrays& inputs) {
                Array rows = SelectedRows(inputs.at("Out@GRAD")[0], {3, 0, 3, -1}, 6);
                for (size_t i = 3 * kWidth; i < rows.values.size(); ++i) rows.values[i] = 0;
                return Arrays{{"W@GRAD", {rows}}};
              },
          .outputs = {{"W@GRAD", 1}}};
}

}  // namespace

void AddLookupTableCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& ids, const Array& table,
                       int64_t padding) {
    OpCase made{.name = name,
                .type = "lookup_table",
                .inputs = {{"Ids", {ids}}, {"W", {table}}},
                .outputs = {{"Out", 1}},
                .gradients = {"W"}};
    if (padding != -1) made.attrs["padding_idx"] = padding;
    made.reference = [padding](const Arrays& inputs) {
      return LookupTableRows(inputs, static_cast<double>(padding));
    };
    cases.push_back(std::move(made));
  };
  add("repeated_ids", Integers({2, 7, 1}, 1, 0, 4), Uniform({4, 5}, 2), -1);
  add("one_column", Integers({6, 1}, 3, 0, 9), Uniform({9, 16}, 4), -1);
  add("padding", Integers({12, 1}, 5, 0, 3), Uniform({3, 17}, 6), 1);
  add("int32_ids", Integers({3, 4, 1}, 7, 0, 5, DType::kInt32), Uniform({5, 3}, 8), -1);
  add("no_ids", Integers({0, 1}, 9, 0, 5), Uniform({5, 3}, 10), -1);
  cases.push_back(SparseLookupTableGradient());
}

}  // namespace skiff::harness
