#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/nn/image_reference.h"

namespace skiff::harness {
namespace {

using IndexedInts = std::vector<int32_t>;

struct IndexedSpec {
  std::string name;
  Shape input;
  Pair output;  // as expected
  Pair kernel;
  Pair stride;
  Padding padding = {};  // before the image alone
  bool adaptive = false;
  AttributeMap attrs = {};
};

struct IndexedRange {
  int64_t begin;
  int64_t end;
};

IndexedRange IndexedWindow(bool adaptive, int64_t o, int64_t inputs, int64_t outputs,
                           int64_t kernel, int64_t stride, int64_t padding) {
  if (adaptive) return {o * inputs / outputs, ((o + 1) * inputs + outputs - 1) / outputs};
  const int64_t begin = o * stride - padding;
  return {std::max<int64_t>(begin, 0), std::min(begin + kernel, inputs)};
}

Arrays MaxWithIndexReference(const IndexedSpec& spec, const Arrays& inputs) {
  Array x = inputs.at("X")[0];
  const Shape shape = {spec.input[0], spec.input[1], spec.output.height, spec.output.width};
  Array out = Zeros(shape);
  std::vector<double> mask;
  const ImageView in(&x, false);
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t y = 0; y < shape[2]; ++y) {
        for (int64_t w = 0; w < shape[3]; ++w) {
          const IndexedRange rows =
              IndexedWindow(spec.adaptive, y, in.height(), spec.output.height, spec.kernel.height,
                            spec.stride.height, spec.padding.top);
          const IndexedRange columns =
              IndexedWindow(spec.adaptive, w, in.width(), spec.output.width, spec.kernel.width,
                            spec.stride.width, spec.padding.left);
          double best = static_cast<double>(std::numeric_limits<float>::lowest());
          int64_t place = -1;
          for (int64_t i = rows.begin; i < rows.end; ++i) {
            for (int64_t j = columns.begin; j < columns.end; ++j) {
              const double value = in.at(n, c, i, j);
              const bool is_above = value > best || (std::isnan(value) && !std::isnan(best));
              if (place >= 0 && !is_above) continue;
              best = value;
              place = i * in.width() + j;
            }
          }
          out.values[mask.size()] = best;
          mask.push_back(static_cast<double>(place));
        }
      }
    }
  }
  return {{"Out", {std::move(out)}}, {"Mask", {Values(shape, mask, DType::kInt32)}}};
}

OpCase MaxWithIndexCase(const IndexedSpec& spec, const Array& x) {
  OpCase made{.name = spec.name,
              .type = "max_pool2d_with_index",
              .inputs = {{"X", {x}}},
              .attrs = spec.attrs,
              .outputs = {{"Out", 1}, {"Mask", 1}},
              .gradients = {"X"}};
  if (!made.attrs.count("ksize")) {
    made.attrs["ksize"] = IndexedInts{static_cast<int32_t>(spec.kernel.height),
                                      static_cast<int32_t>(spec.kernel.width)};
  }
  made.attrs["strides"] = IndexedInts{static_cast<int32_t>(spec.stride.height),
                                      static_cast<int32_t>(spec.stride.width)};
  made.reference = [spec](const Arrays& inputs) { return MaxWithIndexReference(spec, inputs); };
  return made;
}

// Masks that name no pixel of their window: below 0, of another window, and beyond the image.
OpCase ForeignMaskCase() {
  OpCase made{.name = "masks_outside_of_their_windows",
              .type = "max_pool2d_with_index_grad",
              .inputs = {{"X", {Uniform({1, 2, 2, 4}, 1)}},
                         {"Mask", {Values({1, 2, 1, 2}, {-1, 3, 2, 8}, DType::kInt32)}},
                         {"Out@GRAD", {Values({1, 2, 1, 2}, {1, 2, 4, 8})}}},
              .attrs = {{"ksize", IndexedInts{2, 2}}, {"strides", IndexedInts{2, 2}}},
              .outputs = {{"X@GRAD", 1}}};
  made.reference = [](const Arrays&) {
    return Arrays{
        {"X@GRAD", {Values({1, 2, 2, 4}, {0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})}}};
  };
  return made;
}

}  // namespace

void AddMaxPool2dWithIndexCases(CaseList& cases) {
  const std::vector<IndexedSpec> specs = {
      {"windows_side_by_side", {2, 3, 6, 4}, {3, 2}, {2, 2}, {2, 2}},
      {"one_channel", {1, 1, 4, 5}, {3, 4}, {2, 2}, {1, 1}},
      {"overlap_with_padding",
       {2, 5, 7, 8},
       {4, 4},
       {3, 3},
       {2, 2},
       {1, 1, 1, 1},
       false,
       {{"paddings", IndexedInts{1, 1}}}},
      {"padding_of_four_values",
       {1, 3, 6, 5},
       {5, 6},
       {3, 2},
       {1, 1},
       {0, 1, 1, 1},
       false,
       {{"paddings", IndexedInts{0, 1, 1, 1}}}},
      {"global",
       {2, 7, 5, 6},
       {1, 1},
       {5, 6},
       {1, 1},
       {},
       false,
       {{"global_pooling", true}, {"ksize", IndexedInts{2, 2}}, {"paddings", IndexedInts{1, 1}}}},
      {"adaptive",
       {2, 3, 7, 5},
       {3, 2},
       {1, 1},
       {1, 1},
       {},
       true,
       {{"adaptive", true}, {"ksize", IndexedInts{3, 2}}}},
      {"adaptive_with_equal_windows",
       {1, 3, 6, 4},
       {3, 2},
       {1, 1},
       {1, 1},
       {},
       true,
       {{"adaptive", true}, {"ksize", IndexedInts{3, 2}}}},
      {"adaptive_to_more_pixels",
       {1, 3, 2, 3},
       {5, 4},
       {1, 1},
       {1, 1},
       {},
       true,
       {{"adaptive", true}, {"ksize", IndexedInts{5, 4}}}},
      {"large_windows",
       {2, 3, 9, 10},
       {5, 3},
       {7, 6},
       {2, 4},
       {3, 3, 2, 2},
       false,
       {{"paddings", IndexedInts{3, 2}}}},
      {"several_threads", {4, 9, 20, 18}, {10, 9}, {2, 2}, {2, 2}},
      {"empty_batch", {0, 3, 6, 4}, {3, 2}, {2, 2}, {2, 2}},
  };
  for (const IndexedSpec& spec : specs) {
    cases.push_back(MaxWithIndexCase(spec, Distinct(spec.input, 1)));
  }
  // The first of equal pixels, and the first NaN.
  const IndexedSpec ties{"equal_pixels", {1, 1, 3, 3}, {2, 2}, {2, 2}, {1, 1}};
  cases.push_back(MaxWithIndexCase(ties, Values({1, 1, 3, 3}, {0, 5, 5, 5, 5, 1, 2, 2, 2})));
  cases.back().gradients = {};
  const IndexedSpec with_nan{"nan_and_infinities", {1, 2, 2, 4}, {1, 3}, {2, 2}, {1, 1}};
  cases.push_back(MaxWithIndexCase(
      with_nan, Values({1, 2, 2, 4}, {0, NAN, 5, 6, 5, NAN, 1, 7, -INFINITY, -INFINITY, INFINITY, 2,
                                      -INFINITY, -INFINITY, -INFINITY, NAN})));
  cases.back().gradients = {};
  // Windows at rows and columns -1 and 2 of three: only the last one is on the image.
  const IndexedSpec alone{
      "window_on_padding_alone",        {2, 3, 3, 3}, {2, 2}, {1, 1}, {3, 3}, {1, 1, 1, 1}, false,
      {{"paddings", IndexedInts{1, 1}}}};
  cases.push_back(MaxWithIndexCase(alone, Distinct(alone.input, 4)));
  cases.back().gradients = {};
  // The lowest number depends on the dtype.
  cases.back().dtypes = {DType::kFloat32};
  cases.push_back(ForeignMaskCase());
  const IndexedSpec stem{
      "resnet_stem", {8, 64, 112, 112}, {56, 56}, {3, 3},
      {2, 2},        {1, 1, 1, 1},      false,    {{"paddings", IndexedInts{1, 1}}}};
  cases.push_back(MaxWithIndexCase(stem, Distinct(stem.input, 5)));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
