#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays Looked(const Arrays& inputs, double padding) {
  const Array& ids = inputs.at("Ids")[0];
  const Array& table = inputs.at("W")[0];
  const size_t width = static_cast<size_t>(table.shape[1]);
  Array out{.shape = ids.shape, .values = {}};
  out.shape.Append(table.shape[1]);
  for (const double id : ids.values) {
    for (size_t column = 0; column < width; ++column) {
      const bool is_padding = padding >= 0 && id == padding;
      out.values.push_back(is_padding ? 0.0
                                      : table.values[static_cast<size_t>(id) * width + column]);
    }
  }
  return {{"Out", {out}}};
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
      return Looked(inputs, static_cast<double>(padding));
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
  add("bert_words", Integers({16, 128}, 15, 0, 30522), Uniform({30522, 768}, 16), -1);
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
