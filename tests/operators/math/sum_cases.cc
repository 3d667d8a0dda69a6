#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays SumReference(const Arrays& inputs) {
  Array out = inputs.at("X")[0];
  for (size_t k = 1; k < inputs.at("X").size(); ++k) {
    const Array& x = inputs.at("X")[k];
    for (size_t i = 0; i < out.values.size(); ++i) out.values[i] += x.values[i];
  }
  return {{"Out", {out}}};
}

OpCase SumCase(const std::string& name, const Shape& shape, uint64_t count) {
  OpCase result{.name = name,
                .type = "sum",
                .reference = SumReference,
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
  for (uint64_t i = 0; i < count; ++i) result.inputs["X"].push_back(Uniform(shape, 10 + i));
  return result;
}

OpCase IntegerCase(const std::string& name, DType dtype) {
  OpCase result{
      .name = name,
      .type = "sum",
      .inputs = {{"X",
                  {Integers({5, 7}, 1, -90, 90, dtype), Integers({5, 7}, 2, -90, 90, dtype),
                   Integers({5, 7}, 3, -90, 90, dtype)}}},
      .reference = SumReference,
      .outputs = {{"Out", 1}}};
  return result;
}

// 3 * 2^30 as int32, 3 * 2^62 as int64: beyond the largest number, and back from the lowest.
OpCase SumWrappingCase(const std::string& name, DType dtype) {
  const double quarter = dtype == DType::kInt32 ? 0x1p30 : 0x1p62;
  const Array x = Values({2}, {quarter, -quarter}, dtype);
  OpCase result{.name = name,
                .type = "sum",
                .inputs = {{"X", {x, x, x}}},
                .reference =
                    [=](const Arrays&) {
                      return Arrays{{"Out", {Values({2}, {-quarter, quarter}, dtype)}}};
                    },
                .outputs = {{"Out", 1}}};
  return result;
}

Array Rows(const Shape& shape, uint64_t seed, std::vector<int64_t> rows, int64_t height) {
  return SelectedRows(Uniform(shape, seed), std::move(rows), height);
}

// Some of the inputs are dense.
Arrays DenseReference(const Arrays& inputs) {
  Arrays dense;
  for (const Array& x : inputs.at("X")) {
    dense["X"].push_back(x.is_selected_rows() ? Dense(x) : x);
  }
  return SumReference(dense);
}

Arrays RowsReference(const Arrays& inputs) {
  Array out = inputs.at("X")[0];
  for (size_t k = 1; k < inputs.at("X").size(); ++k) {
    const Array& x = inputs.at("X")[k];
    out.shape[0] += x.shape[0];
    for (const double value : x.values) out.values.push_back(value);
    out.rows.insert(out.rows.end(), x.rows.begin(), x.rows.end());
  }
  return {{"Out", {out}}};
}

OpCase RowsCase(const std::string& name, std::vector<Array> inputs, bool is_dense) {
  return {.name = name,
          .type = "sum",
          .inputs = {{"X", std::move(inputs)}},
          .reference = is_dense ? DenseReference : RowsReference,
          .outputs = {{"Out", 1}}};
}

void AddSelectedRowsCases(CaseList& cases) {
  const Array some = Rows({4, 5}, 30, {6, 0, 6, -1}, 7);
  const Array others = Rows({3, 5}, 31, {0, 6, 2}, 7);
  const Array none = Rows({0, 5}, 32, {}, 7);
  cases.push_back(RowsCase("selected_rows", {some, others, some}, false));
  cases.push_back(RowsCase("selected_rows_alone", {some}, false));
  cases.push_back(RowsCase("selected_rows_and_none", {none, others, none}, false));
  cases.push_back(RowsCase("no_selected_rows", {none, none}, false));
  cases.push_back(RowsCase("selected_rows_of_one_number",
                           {Rows({3}, 33, {1, 2, 1}, 3), Rows({2}, 34, {-1, 0}, 3)}, false));
  const Array dense = Uniform({7, 5}, 35);
  cases.push_back(RowsCase("selected_rows_and_dense", {some, dense, others}, true));
  cases.push_back(RowsCase("dense_and_selected_rows", {dense, some, dense, none}, true));
  std::vector<int64_t> many(700);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i * i % 97);
  const Array wide = Rows({700, 130}, 36, many, 97);
  cases.push_back(RowsCase("many_selected_rows", {wide, wide}, false));
  cases.push_back(RowsCase("many_selected_rows_and_dense", {wide, Uniform({97, 130}, 37)}, true));
}

}  // namespace

void AddSumCases(CaseList& cases) {
  cases.push_back(SumCase("one_input", {3, 5}, 1));
  cases.push_back(SumCase("two_inputs", {3, 5}, 2));
  cases.push_back(SumCase("five_inputs", {2, 3, 4}, 5));
  cases.push_back(SumCase("image_1_channel", {2, 1, 3, 3}, 2));
  cases.push_back(SumCase("image_17_channels", {2, 17, 3, 3}, 3));
  cases.push_back(SumCase("image_16_channels", {2, 16, 3, 3}, 2));
  cases.push_back(SumCase("no_elements", {0, 4}, 3));
  // With numbers that float32 rounds, and one that it doesn't hold.
  const auto add_wide = [&](const std::string& name, const std::vector<double>& terms, double sum) {
    OpCase wide{.name = name,
                .type = "sum",
                .attrs = {{"wide_float32", true}},
                .reference =
                    [=](const Arrays&) {
                      return Arrays{{"Out", {Values({1}, {sum}, DType::kFloat64)}}};
                    },
                .outputs = {{"Out", 1}}};
    for (const double term : terms)
      wide.inputs["X"].push_back(Values({1}, {term}, DType::kFloat64));
    wide.dtypes = {DType::kFloat64};
    cases.push_back(wide);
  };
  add_wide("wide_one", {0x1p200}, 0x1p200);
  add_wide("wide_rounded", {0x1p24, 1, 1, 1, 0x1p24}, 0x1p25);
  add_wide("wide_beyond_float32", {0x1p127, 0x1p127, 1}, 0x1p128 + 1);
  std::vector<double> many_terms(70, 1);
  many_terms[0] = 0x1p24;
  add_wide("wide_many", many_terms, 0x1p24);
  // More than one launch adds on a device.
  OpCase many_inputs = SumCase("many_inputs", {3, 5}, 70);
  many_inputs.gradients.clear();
  cases.push_back(many_inputs);
  OpCase several_blocks = SumCase("several_blocks", {41, 1001}, 3);
  several_blocks.gradients.clear();
  cases.push_back(several_blocks);
  cases.push_back(IntegerCase("int32", DType::kInt32));
  cases.push_back(IntegerCase("int64", DType::kInt64));
  cases.push_back(SumWrappingCase("int32_wraps", DType::kInt32));
  cases.push_back(SumWrappingCase("int64_wraps", DType::kInt64));
  AddSelectedRowsCases(cases);
  OpCase large = SumCase("two_of_4M", {1024, 4096}, 2);
  large.benchmark_only = true;
  cases.push_back(large);
}

}  // namespace skiff::harness
