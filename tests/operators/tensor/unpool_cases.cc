#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

using UnpoolInts = std::vector<int32_t>;

Arrays UnpoolReference(const Arrays& inputs, const Shape& out) {
  const Array& x = inputs.at("X")[0];
  const Array& indices = inputs.at("Indices")[0];
  const int64_t pooled = x.shape[2] * x.shape[3];
  const int64_t pixels = out[2] * out[3];
  std::vector<double> values(static_cast<size_t>(out.element_count()), 0.0);
  for (size_t i = 0; i < x.values.size(); ++i) {
    const auto channel = static_cast<int64_t>(i) / pooled;
    values[static_cast<size_t>(channel * pixels + static_cast<int64_t>(indices.values[i]))] =
        x.values[i];
  }
  Array made = x;
  made.shape = out;
  made.values = std::move(values);
  return {{"Out", {std::move(made)}}};
}

// Returns a pixel of each of the 2x2 windows of images [N, C, 2 H, 2 W], as a pooling names them.
Array PixelsOfWindows(const Shape& pooled) {
  const Array uniform = Integers(pooled, 17, 0, 4, DType::kInt32);
  const auto make = [uniform, width = pooled[3], plane = pooled[2] * pooled[3]] {
    std::vector<double> values = uniform.values;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto window = static_cast<int64_t>(i) % plane;
      const auto corner = static_cast<int64_t>(values[i]);
      const int64_t row = 2 * (window / width) + corner / 2;
      values[i] = static_cast<double>(row * 2 * width + 2 * (window % width) + corner % 2);
    }
    return values;
  };
  Array indices = uniform;
  indices.values = LazyValues(make);
  return indices;
}

}  // namespace

void AddUnpoolCases(CaseList& cases) {
  // Which element of several for one pixel remains is the same in finite differences.
  const auto add = [&](const std::string& name, const Array& x, const Array& indices,
                       const Shape& out, AttributeMap attrs) {
    OpCase made{.name = name,
                .type = "unpool",
                .inputs = {{"X", {x}}, {"Indices", {indices}}},
                .attrs = std::move(attrs),
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    made.attrs["unpooling_type"] = std::string("max");
    if (x.fixed_dtype) made.gradients = {};
    made.reference = [out](const Arrays& inputs) { return UnpoolReference(inputs, out); };
    cases.push_back(std::move(made));
  };
  const auto to = [](int32_t height, int32_t width) -> AttributeMap {
    return {{"ksize", UnpoolInts{2, 2}},
            {"strides", UnpoolInts{2, 2}},
            {"output_size", UnpoolInts{height, width}}};
  };
  const AttributeMap halves = {{"ksize", UnpoolInts{2, 2}}, {"strides", UnpoolInts{2, 2}}};
  add("of_windows_side_by_side", Uniform({1, 2, 2, 2}, 1),
      Values({1, 2, 2, 2}, {1, 6, 8, 11, 0, 3, 13, 15}, DType::kInt32), {1, 2, 4, 4}, to(4, 4));
  add("some_twice", Uniform({2, 1, 2, 3}, 2),
      Values({2, 1, 2, 3}, {4, 4, 7, 4, 0, 7, 23, 0, 23, 5, 5, 5}, DType::kInt32), {2, 1, 4, 6},
      to(4, 6));
  add("stride_padding_and_window", Uniform({2, 2, 2, 3}, 3), Integers({2, 2, 2, 3}, 4, 0, 4 * 5),
      {2, 2, 4, 5},
      {{"ksize", UnpoolInts{3, 3}}, {"strides", UnpoolInts{3, 2}}, {"paddings", UnpoolInts{1, 1}}});
  add("output_size", Uniform({1, 3, 2, 2}, 5),
      Values({1, 3, 2, 2}, {34, 0, 6, 13, 1, 2, 3, 4, 20, 21, 28, 33}, DType::kInt32), {1, 3, 5, 7},
      to(5, 7));
  add("one_pixel", Uniform({1, 1, 1, 1}, 7), Values({1, 1, 1, 1}, {0}, DType::kInt32), {1, 1, 1, 1},
      {{"ksize", UnpoolInts{1, 1}}});
  add("no_images", Uniform({0, 2, 2, 2}, 8), Integers({0, 2, 2, 2}, 9, 0, 16), {0, 2, 4, 4},
      halves);
  add("images_without_rows", Uniform({1, 2, 0, 2}, 8), Integers({1, 2, 0, 2}, 9, 0, 16),
      {1, 2, 3, 4}, {{"ksize", UnpoolInts{2, 2}}, {"output_size", UnpoolInts{3, 4}}});
  add("int64", Integers({2, 2, 3, 3}, 10, -9, 9), Integers({2, 2, 3, 3}, 11, 0, 36), {2, 2, 6, 6},
      halves);
  add("int32", Integers({2, 2, 3, 3}, 12, -9, 9, DType::kInt32),
      Integers({2, 2, 3, 3}, 13, 0, 36, DType::kInt32), {2, 2, 6, 6}, halves);
  add("several_threads", Uniform({2, 24, 14, 14}, 14), Integers({2, 24, 14, 14}, 15, 0, 784),
      {2, 24, 28, 28}, halves);
  cases.back().gradients = {};
  cases.back().dtypes = {DType::kFloat32};
  add("decoder_8x64x56x56", Uniform({8, 64, 56, 56}, 16), PixelsOfWindows({8, 64, 56, 56}),
      {8, 64, 112, 112}, halves);
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
