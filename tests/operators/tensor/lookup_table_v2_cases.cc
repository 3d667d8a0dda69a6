#include "tests/harness/op_case.h"
#include "tests/operators/tensor/looked_up.h"

namespace skiff::harness {
namespace {

Arrays LookupTableV2Rows(const Arrays& inputs, double padding) {
  Shape shape = inputs.at("Ids")[0].shape;
  shape.Append(inputs.at("W")[0].shape[1]);
  return {{"Out", {LookedUp(inputs, padding, shape)}}};
}

// The gradient op: slot i is row Ids[i] with the values Out@GRAD[i, :].
OpCase SparseLookupTableV2Gradient(const std::string& name, const Array& ids, const Array& table,
                                   int64_t padding) {
  Shape shape = ids.shape;
  shape.Append(table.shape[1]);
  return {.name = name,
          .type = "lookup_table_v2_grad",
          .inputs = {{"Ids", {ids}}, {"W", {table}}, {"Out@GRAD", {Uniform(shape, 40)}}},
          .attrs = {{"padding_idx", padding}, {"is_sparse", true}},
          .reference =
              [padding](const Arrays& inputs) {
                const Array& numbers = inputs.at("Ids")[0];
                const Array& w = inputs.at("W")[0];
                const int64_t width = w.shape[1];
                Array rows{.shape = {numbers.shape.element_count(), width}, .values = {}};
                rows.height = w.shape[0];
                for (const double id : numbers.values) {
                  const auto row = static_cast<int64_t>(id);
                  const bool is_padding = padding >= 0 && row == padding;
                  rows.rows.push_back(is_padding ? -1 : row);
                  for (int64_t i = 0; i < width; ++i) {
                    const size_t at = rows.values.size();
                    rows.values.push_back(is_padding ? 0 : inputs.at("Out@GRAD")[0].values[at]);
                  }
                }
                return Arrays{{"W@GRAD", {rows}}};
              },
          .outputs = {{"W@GRAD", 1}}};
}

// The same for the dense gradient.
OpCase DenseGradient(const std::string& name, const Array& ids, const Array& table,
                     int64_t padding) {
  OpCase made = SparseLookupTableV2Gradient(name, ids, table, padding);
  made.attrs = {{"padding_idx", padding}};
  made.reference = [padding](const Arrays& inputs) {
    const Array& numbers = inputs.at("Ids")[0];
    const size_t width = static_cast<size_t>(inputs.at("W")[0].shape[1]);
    Array sums{.shape = inputs.at("W")[0].shape, .values = {}};
    sums.values.resize(static_cast<size_t>(sums.shape.element_count()));
    for (size_t i = 0; i < numbers.values.size(); ++i) {
      const auto row = static_cast<int64_t>(numbers.values[i]);
      for (size_t column = 0; column < width && row != padding; ++column) {
        sums.values[static_cast<size_t>(row) * width + column] +=
            inputs.at("Out@GRAD")[0].values[i * width + column];
      }
    }
    return Arrays{{"W@GRAD", {sums}}};
  };
  return made;
}

}  // namespace

void AddLookupTableV2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& ids, const Array& table,
                       int64_t padding) {
    OpCase made{.name = name,
                .type = "lookup_table_v2",
                .inputs = {{"Ids", {ids}}, {"W", {table}}},
                .outputs = {{"Out", 1}},
                .gradients = {"W"}};
    if (padding != -1) made.attrs["padding_idx"] = padding;
    made.reference = [padding](const Arrays& inputs) {
      return LookupTableV2Rows(inputs, static_cast<double>(padding));
    };
    cases.push_back(std::move(made));
  };
  add("repeated_ids", Integers({2, 7}, 1, 0, 4), Uniform({4, 5}, 2), -1);
  add("ids_of_one_column", Integers({6, 1}, 3, 0, 9), Uniform({9, 16}, 4), -1);
  add("padding", Integers({12}, 5, 0, 3), Uniform({3, 17}, 6), 1);
  add("padding_outside_the_table", Values({3}, {0, 7, 2}, DType::kInt64), Uniform({3, 2}, 7), 7);
  add("int32_ids", Integers({3, 4}, 8, 0, 5, DType::kInt32), Uniform({5, 3}, 9), -1);
  add("no_ids", Integers({0, 4}, 10, 0, 5), Uniform({5, 3}, 11), -1);
  add("scalar_id", Values(Shape(), {2}, DType::kInt64), Uniform({5, 3}, 12), -1);
  add("many_rows", Integers({40, 25}, 13, 0, 300), Uniform({300, 48}, 14), 0);
  cases.back().gradients.clear();
  add("few_rows", Integers({110}, 18, 0, 2), Uniform({2, 3}, 19), -1);
  add("wide_rows", Integers({7}, 48, 0, 3), Uniform({3, 300}, 49), -1);
  const auto add_sparse = [&](const std::string& name, const Array& ids, const Array& table,
                              int64_t padding) {
    add(name, ids, table, padding);
    cases.back().attrs["is_sparse"] = true;
  };
  add_sparse("sparse_repeated_ids", Integers({2, 7}, 21, 0, 4), Uniform({4, 5}, 22), -1);
  add_sparse("sparse_padding", Integers({12}, 23, 0, 3), Uniform({3, 17}, 24), 1);
  add_sparse("sparse_int32_ids", Integers({3, 4}, 25, 0, 5, DType::kInt32), Uniform({5, 3}, 26),
             -1);
  add_sparse("sparse_no_ids", Integers({0, 4}, 27, 0, 5), Uniform({5, 3}, 28), -1);
  add_sparse("sparse_scalar_id", Values(Shape(), {2}, DType::kInt64), Uniform({5, 3}, 29), -1);
  add_sparse("sparse_many_rows", Integers({40, 25}, 30, 0, 300), Uniform({300, 48}, 31), 0);
  // On a device, more ids than a block sorts, of rows whose numbers have two digits.
  cases.push_back(
      DenseGradient("many_ids", Integers({2100}, 46, 0, 260), Uniform({260, 1}, 47), 7));
  cases.push_back(
      SparseLookupTableV2Gradient("sparse", Integers({2, 7}, 41, 0, 4), Uniform({4, 5}, 42), -1));
  cases.push_back(SparseLookupTableV2Gradient("sparse_padding", Integers({12}, 43, 0, 3),
                                              Uniform({3, 7}, 44), 1));
  cases.push_back(SparseLookupTableV2Gradient("sparse_padding_outside_the_table",
                                              Values({3}, {0, 7, 2}, DType::kInt64),
                                              Uniform({3, 2}, 45), 7));
  add("bert_words", Integers({16, 128}, 15, 0, 30522), Uniform({30522, 768}, 16), -1);
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
