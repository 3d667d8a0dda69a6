#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

Array Permuted(const Array& x, const std::vector<int32_t>& axis) {
  Shape out = x.shape;
  for (int k = 0; k < out.rank(); ++k) out[k] = x.shape[axis[static_cast<size_t>(k)]];
  Array result = Generated(out, [&](const std::vector<int64_t>& at) {
    std::vector<int64_t> from(at.size());
    for (size_t k = 0; k < at.size(); ++k) from[static_cast<size_t>(axis[k])] = at[k];
    return x.values[IndexOf(x.shape, from)];
  });
  result.fixed_dtype = x.fixed_dtype;
  result.dtype = x.dtype;
  return result;
}

OpCase TransposeCase(const std::string& name, const Array& x, std::vector<int32_t> axis) {
  OpCase made = ReshapingCase("transpose2", name, x, {{"axis", axis}}, {});
  for (int32_t& k : axis) k = k < 0 ? k + x.shape.rank() : k;
  made.accepted_wrong_inputs.clear();  // the axes go with one rank
  made.reference = [axis](const Arrays& inputs) {
    const Array& given = inputs.at("X")[0];
    return Arrays{{"Out", {Permuted(given, axis)}}, {"XShape", {XShapeOf(given)}}};
  };
  return made;
}

}  // namespace

void AddTranspose2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const std::vector<int32_t>& axis) {
    cases.push_back(TransposeCase(name, x, axis));
  };
  add("matrix", Uniform({5, 7}, 1), {1, 0});
  add("identity", Uniform({2, 3, 4}, 2), {0, 1, 2});
  add("attention_heads", Uniform({2, 5, 3, 4}, 3), {0, 2, 1, 3});
  add("attention_keys", Uniform({2, 3, 5, 4}, 4), {0, 1, 3, 2});
  add("reversed", Uniform({2, 3, 4, 5}, 5), {3, 2, 1, 0});
  add("image_to_channels_last", Uniform({2, 17, 3, 3}, 6), {0, 2, 3, 1});
  add("negative_axes", Uniform({2, 3, 4}, 7), {-1, 0, -2});
  add("extents_of_one", Uniform({1, 4, 1, 3}, 8), {3, 0, 1, 2});
  add("one_element", Uniform({1, 1}, 9), {1, 0});
  add("scalar", Uniform(Shape(), 10), {});
  add("empty", Uniform({3, 0, 2}, 11), {2, 0, 1});
  add("int64", Integers({9, 6}, 12, -50, 50), {1, 0});
  add("int32", Integers({9, 6}, 13, -50, 50, DType::kInt32), {1, 0});
  add("uint8", Integers({9, 6}, 14, 0, 200, DType::kUint8), {1, 0});
  add("int16", Integers({9, 6}, 15, -50, 50, DType::kInt16), {1, 0});
  // Beyond a tile on both sides, and enough for several threads.
  add("many_tiles", Uniform({3, 131, 70}, 16), {2, 0, 1});
  cases.back().gradients.clear();
  add("few_columns", Uniform({2, 1100, 3}, 18), {0, 2, 1});
  add("long_rows", Uniform({30, 9, 200}, 17), {1, 0, 2});
  cases.back().gradients.clear();
  OpCase heads = TransposeCase("bert_heads", Uniform({16, 128, 12, 64}, 18), {0, 2, 1, 3});
  heads.benchmark_only = true;
  cases.push_back(std::move(heads));
  OpCase keys = TransposeCase("bert_keys", Uniform({16, 12, 128, 64}, 19), {0, 1, 3, 2});
  keys.benchmark_only = true;
  cases.push_back(std::move(keys));
}

}  // namespace skiff::harness
