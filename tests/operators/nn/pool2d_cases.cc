#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/operators/nn/image_reference.h"

namespace skiff::harness {
namespace {

using Ints = std::vector<int32_t>;

struct PoolingSpec {
  std::string name;
  Shape input;  // N, C, H, W, whatever the format
  Pair output;  // as expected
  Pair kernel;
  Pair stride;
  Padding padding;
  bool adaptive = false;
  bool exclusive = true;
  bool channels_last = false;
  AttributeMap attrs;
  bool benchmark_only = false;
};

struct Pool2dRange {
  int64_t begin;
  int64_t end;
  int64_t size;  // with the padding that counts
};

Pool2dRange Pool2dWindowOf(bool adaptive, int64_t o, int64_t inputs, int64_t outputs,
                           int64_t kernel, int64_t stride, int64_t padding) {
  if (adaptive) {
    const int64_t begin = o * inputs / outputs;
    const int64_t end = ((o + 1) * inputs + outputs - 1) / outputs;
    return {begin, end, end - begin};
  }
  const int64_t begin = o * stride - padding;
  const int64_t end = std::min(begin + kernel, inputs + padding);
  return {std::max<int64_t>(begin, 0), std::min(end, inputs), end - begin};
}

double Pool(const PoolingSpec& spec, const ImageView& in, int64_t n, int64_t c, int64_t y,
            int64_t x, bool is_max) {
  const Pool2dRange rows = Pool2dWindowOf(spec.adaptive, y, in.height(), spec.output.height,
                                          spec.kernel.height, spec.stride.height, spec.padding.top);
  const Pool2dRange columns =
      Pool2dWindowOf(spec.adaptive, x, in.width(), spec.output.width, spec.kernel.width,
                     spec.stride.width, spec.padding.left);
  double best = -INFINITY;
  double sum = 0;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      const double value = in.at(n, c, i, j);
      if (!std::isnan(best) && !(value <= best)) best = value;
      sum += value;
    }
  }
  if (is_max) return best;
  const int64_t inside = (rows.end - rows.begin) * (columns.end - columns.begin);
  return sum / static_cast<double>(spec.exclusive ? inside : rows.size * columns.size);
}

OpCase PoolingCase(const PoolingSpec& spec, const std::string& kind) {
  OpCase op_case;
  op_case.name = kind + "_" + spec.name;
  op_case.type = "pool2d";
  op_case.inputs = {{"X", {Distinct(ImageShape(spec.input, spec.channels_last), 1)}}};
  op_case.attrs = spec.attrs;
  op_case.attrs["pooling_type"] = kind;
  if (spec.channels_last) op_case.attrs["data_format"] = std::string("NHWC");
  if (!spec.exclusive) op_case.attrs["exclusive"] = false;
  if (!op_case.attrs.count("ksize")) {
    op_case.attrs["ksize"] =
        Ints{static_cast<int32_t>(spec.kernel.height), static_cast<int32_t>(spec.kernel.width)};
  }
  op_case.attrs["strides"] =
      Ints{static_cast<int32_t>(spec.stride.height), static_cast<int32_t>(spec.stride.width)};
  op_case.reference = [spec, kind](const Arrays& inputs) {
    Array input = inputs.at("X")[0];
    Array output = Zeros(ImageShape(
        {spec.input[0], spec.input[1], spec.output.height, spec.output.width}, spec.channels_last));
    const ImageView in(&input, spec.channels_last);
    const ImageView out(&output, spec.channels_last);
    for (int64_t n = 0; n < out.batch(); ++n) {
      for (int64_t c = 0; c < out.channels(); ++c) {
        for (int64_t y = 0; y < out.height(); ++y) {
          for (int64_t x = 0; x < out.width(); ++x)
            out.at(n, c, y, x) = Pool(spec, in, n, c, y, x, kind == "max");
        }
      }
    }
    return Arrays{{"Out", {std::move(output)}}};
  };
  op_case.outputs = {{"Out", 1}};
  op_case.gradients = {"X"};
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

std::vector<PoolingSpec> Specs() {
  return {
      {.name = "windows_side_by_side",
       .input = {2, 3, 6, 4},
       .output = {3, 2},
       .kernel = {2, 2},
       .stride = {2, 2}},
      {.name = "one_channel",
       .input = {1, 1, 4, 5},
       .output = {3, 4},
       .kernel = {2, 2},
       .stride = {1, 1}},
      {.name = "overlap_with_padding",
       .input = {2, 17, 7, 8},
       .output = {4, 4},
       .kernel = {3, 3},
       .stride = {2, 2},
       .padding = {1, 1, 1, 1},
       .attrs = {{"paddings", Ints{1, 1}}}},
      {.name = "whole_block",
       .input = {2, 16, 6, 6},
       .output = {3, 3},
       .kernel = {3, 3},
       .stride = {2, 2},
       .padding = {1, 1, 1, 1},
       .attrs = {{"paddings", Ints{1, 1}}}},
      {.name = "padding_of_four_values",
       .input = {1, 3, 6, 5},
       .output = {5, 6},
       .kernel = {3, 2},
       .stride = {1, 1},
       .padding = {0, 1, 1, 1},
       .attrs = {{"paddings", Ints{0, 1, 1, 1}}}},
      {.name = "padding_counts",
       .input = {2, 16, 6, 6},
       .output = {3, 3},
       .kernel = {3, 3},
       .stride = {2, 2},
       .padding = {1, 1, 1, 1},
       .exclusive = false,
       .attrs = {{"paddings", Ints{1, 1}}}},
      {.name = "ceil_mode",
       .input = {1, 3, 6, 8},
       .output = {3, 4},
       .kernel = {3, 3},
       .stride = {2, 2},
       .attrs = {{"ceil_mode", true}}},
      // The last windows end beyond the input and its padding, which divides by less.
      {.name = "ceil_mode_padding_counts",
       .input = {1, 3, 6, 9},
       .output = {4, 5},
       .kernel = {3, 4},
       .stride = {2, 2},
       .padding = {1, 1, 1, 1},
       .exclusive = false,
       .attrs = {{"ceil_mode", true}, {"paddings", Ints{1, 1}}}},
      // ceil(7 / 2) = 4 rows need 2, ceil(6 / 3) = 2 columns no pixels of padding.
      {.name = "same_padding",
       .input = {1, 3, 7, 6},
       .output = {4, 2},
       .kernel = {3, 3},
       .stride = {2, 3},
       .padding = {1, 1, 0, 0},
       .attrs = {{"padding_algorithm", std::string("SAME")}}},
      {.name = "valid_padding",
       .input = {1, 3, 7, 6},
       .output = {3, 2},
       .kernel = {3, 3},
       .stride = {2, 3},
       .attrs = {{"padding_algorithm", std::string("VALID")}, {"paddings", Ints{1, 1}}}},
      {.name = "global",
       .input = {2, 17, 5, 6},
       .output = {1, 1},
       .kernel = {5, 6},
       .attrs = {{"global_pooling", true}, {"ksize", Ints{2, 2}}, {"paddings", Ints{1, 1}}}},
      {.name = "adaptive",
       .input = {2, 3, 7, 5},
       .output = {3, 2},
       .adaptive = true,
       .attrs = {{"adaptive", true}, {"ksize", Ints{3, 2}}}},
      {.name = "adaptive_with_equal_windows",
       .input = {1, 16, 6, 4},
       .output = {3, 2},
       .kernel = {2, 2},
       .stride = {2, 2},
       .attrs = {{"adaptive", true}, {"ksize", Ints{3, 2}}}},
      {.name = "adaptive_to_more_pixels",
       .input = {1, 3, 2, 3},
       .output = {5, 4},
       .adaptive = true,
       .attrs = {{"adaptive", true}, {"ksize", Ints{5, 4}}}},
      {.name = "one_step_beyond_the_image",
       .input = {1, 16, 5, 6},
       .output = {1, 1},
       .kernel = {3, 3},
       .stride = {std::numeric_limits<int32_t>::max(), 1000},
       .padding = {1, 1, 1, 1},
       .exclusive = false,
       .attrs = {{"paddings", Ints{1, 1}}}},
      {.name = "windows_of_padding_for_the_most_part",
       .input = {1, 16, 3, 2},
       .output = {2, 2},
       .kernel = {40, 30},
       .stride = {2, 2},
       .padding = {20, 20, 15, 15},
       .exclusive = false,
       .attrs = {{"paddings", Ints{20, 15}}}},
      // On a device, a warp shares each of these.
      {.name = "large_windows",
       .input = {2, 3, 9, 10},
       .output = {5, 3},
       .kernel = {7, 6},
       .stride = {2, 4},
       .padding = {3, 3, 2, 2},
       .attrs = {{"paddings", Ints{3, 2}}}},
      {.name = "channels_last",
       .input = {2, 3, 6, 5},
       .output = {3, 3},
       .kernel = {3, 3},
       .stride = {2, 2},
       .padding = {1, 1, 1, 1},
       .channels_last = true,
       .attrs = {{"paddings", Ints{1, 1}}}},
      {.name = "empty_batch",
       .input = {0, 3, 6, 4},
       .output = {3, 2},
       .kernel = {2, 2},
       .stride = {2, 2}},
      {.name = "resnet_stem",
       .input = {8, 64, 112, 112},
       .output = {56, 56},
       .kernel = {3, 3},
       .stride = {2, 2},
       .padding = {1, 1, 1, 1},
       .attrs = {{"paddings", Ints{1, 1}}},
       .benchmark_only = true},
      {.name = "resnet_head",
       .input = {8, 2048, 7, 7},
       .output = {1, 1},
       .kernel = {7, 7},
       .attrs = {{"global_pooling", true}},
       .benchmark_only = true},
  };
}

// The first of equal pixels of a window, row by row, takes the gradient.
OpCase Pool2dTiesCase() {
  OpCase op_case;
  op_case.name = "ties_go_to_the_first_pixel";
  op_case.type = "pool2d_grad";
  op_case.inputs = {{"X", {Values({1, 1, 3, 3}, {0, 5, 5, 5, 5, 1, 2, 2, 2})}},
                    {"Out", {Values({1, 1, 2, 2}, {5, 5, 5, 5})}},
                    {"Out@GRAD", {Values({1, 1, 2, 2}, {1, 10, 100, 1000})}}};
  op_case.attrs = {{"pooling_type", std::string("max")}, {"ksize", Ints{2, 2}}};
  op_case.reference = [](const Arrays&) {
    return Arrays{{"X@GRAD", {Values({1, 1, 3, 3}, {0, 11, 0, 100, 1000, 0, 0, 0, 0})}}};
  };
  op_case.outputs = {{"X@GRAD", 1}};
  return op_case;
}

// NaNs at the first, at the last and at other places of windows, in several channels, and a window
// with only the lowest number.
OpCase Pool2dNanCase(const PoolingSpec& spec, const std::string& kind) {
  OpCase op_case = PoolingCase(spec, kind);
  Array& x = op_case.inputs.at("X")[0];
  for (size_t i = 0; i < x.values.size(); i += 37) x.values[i] = NAN;
  const ImageView image(&x, spec.channels_last);
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 2; ++j) image.at(0, 1, i, j) = -INFINITY;
  }
  op_case.gradients = {};
  return op_case;
}

OpCase Pool2dNanGradientCase() {
  OpCase op_case;
  op_case.name = "max_nan_takes_the_gradient_if_it_is_the_first";
  op_case.type = "pool2d_grad";
  op_case.inputs = {{"X", {Values({1, 1, 3, 4}, {0, NAN, 5, 6, 5, NAN, 1, 7, 2, 2, 2, 2})}},
                    {"Out", {Values({1, 1, 2, 3}, {NAN, NAN, 7, NAN, NAN, 7})}},
                    {"Out@GRAD", {Values({1, 1, 2, 3}, {1, 10, 100, 1000, 10000, 100000})}}};
  op_case.attrs = {{"pooling_type", std::string("max")}, {"ksize", Ints{2, 2}}};
  op_case.reference = [](const Arrays&) {
    return Arrays{
        {"X@GRAD", {Values({1, 1, 3, 4}, {0, 11, 0, 0, 0, 11000, 0, 100100, 0, 0, 0, 0})}}};
  };
  op_case.outputs = {{"X@GRAD", 1}};
  return op_case;
}

// Windows at rows and columns -1 and 2 of three: only the last one is on the image. `nothing` is
// the result of the others.
OpCase Pool2dPaddingAloneCase(const std::string& kind, double nothing) {
  OpCase op_case;
  op_case.name = kind + "_window_on_padding_alone";
  op_case.type = "pool2d";
  op_case.inputs = {{"X", {Distinct({2, 3, 3, 3}, 4)}}};
  op_case.attrs = {{"pooling_type", kind},
                   {"ksize", Ints{1, 1}},
                   {"strides", Ints{3, 3}},
                   {"paddings", Ints{1, 1}}};
  op_case.reference = [nothing](const Arrays& inputs) {
    Array out = Zeros({2, 3, 2, 2});
    for (size_t plane = 0; plane < 6; ++plane) {
      for (size_t i = 0; i < 3; ++i) out.values[4 * plane + i] = nothing;
      out.values[4 * plane + 3] = inputs.at("X")[0].values[9 * plane + 8];
    }
    return Arrays{{"Out", {out}}};
  };
  op_case.outputs = {{"Out", 1}};
  // The lowest number depends on the dtype.
  op_case.dtypes = {DType::kFloat32};
  return op_case;
}

// The same for windows of 36 pixels that end before the image or begin behind it.
OpCase LargePaddingAloneCase(const std::string& kind, double nothing) {
  OpCase op_case = Pool2dPaddingAloneCase(kind, nothing);
  op_case.name = kind + "_large_window_on_padding_alone";
  op_case.inputs = {{"X", {Distinct({1, 2, 6, 6}, 4)}}};
  op_case.attrs["ksize"] = Ints{6, 6};
  op_case.attrs["strides"] = Ints{20, 20};
  op_case.attrs["paddings"] = Ints{14, 14};
  op_case.reference = [nothing](const Arrays&) {
    return Arrays{{"Out", {Values({1, 2, 2, 2}, std::vector<double>(8, nothing))}}};
  };
  return op_case;
}

}  // namespace

void AddPool2dCases(CaseList& cases) {
  for (const char* kind : {"max", "avg"}) {
    for (const PoolingSpec& spec : Specs()) cases.push_back(PoolingCase(spec, kind));
  }
  PoolingSpec with_nan = {.name = "nan_and_infinities",
                          .input = {2, 17, 6, 8},
                          .output = {3, 4},
                          .kernel = {2, 2},
                          .stride = {2, 2}};
  for (const char* kind : {"max", "avg"}) cases.push_back(Pool2dNanCase(with_nan, kind));
  const PoolingSpec large = {.name = "nan_in_large_windows",
                             .input = {2, 3, 9, 10},
                             .output = {3, 5},
                             .kernel = {5, 6},
                             .stride = {2, 1}};
  for (const char* kind : {"max", "avg"}) cases.push_back(Pool2dNanCase(large, kind));
  with_nan.name += "_channels_last";
  with_nan.channels_last = true;
  cases.push_back(Pool2dNanCase(with_nan, "max"));
  cases.push_back(Pool2dNanGradientCase());
  cases.push_back(Pool2dTiesCase());
  const auto lowest = static_cast<double>(std::numeric_limits<float>::lowest());
  cases.push_back(Pool2dPaddingAloneCase("max", lowest));
  cases.push_back(Pool2dPaddingAloneCase("avg", 0));
  cases.push_back(LargePaddingAloneCase("max", lowest));
  cases.push_back(LargePaddingAloneCase("avg", 0));
}

}  // namespace skiff::harness
