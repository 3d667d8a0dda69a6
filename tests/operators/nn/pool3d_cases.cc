#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/operators/nn/volume_reference.h"

namespace skiff::harness {
namespace {

using Ints = std::vector<int32_t>;

struct Pool3dSpec {
  std::string name;
  VolumeSize input;
  Triple output{1, 1, 1};  // as expected
  Triple kernel{1, 1, 1};
  Triple stride{1, 1, 1};
  Triple padding{0, 0, 0};  // before the input
  bool adaptive = false;
  bool exclusive = true;
  bool channels_last = false;
  AttributeMap attrs = {};
};

struct Pool3dRange {
  int64_t begin;
  int64_t end;
  int64_t size;  // with the padding that counts
};

Pool3dRange Pool3dWindowOf(const Pool3dSpec& spec, size_t axis, int64_t o) {
  const int64_t inputs = spec.input.size[axis];
  if (spec.adaptive) {
    const int64_t begin = o * inputs / spec.output[axis];
    const int64_t end = ((o + 1) * inputs + spec.output[axis] - 1) / spec.output[axis];
    return {begin, end, end - begin};
  }
  const int64_t begin = o * spec.stride[axis] - spec.padding[axis];
  const int64_t end = std::min(begin + spec.kernel[axis], inputs + spec.padding[axis]);
  return {std::max<int64_t>(begin, 0), std::min(end, inputs), end - begin};
}

Arrays Pool3dReference(const Pool3dSpec& spec, bool is_max, const Arrays& inputs) {
  const LazyValues& x = inputs.at("X")[0].values;
  const VolumeSize out{
      .batch = spec.input.batch, .channels = spec.input.channels, .size = spec.output};
  std::vector<double> values(static_cast<size_t>(out.count()), 0.0);
  for (int64_t n = 0; n < out.batch; ++n) {
    for (int64_t c = 0; c < out.channels; ++c) {
      ForEachPoint(out.size, [&](const Triple& p) {
        Pool3dRange windows[3];
        Triple size;
        int64_t whole = 1;
        for (size_t axis = 0; axis < 3; ++axis) {
          windows[axis] = Pool3dWindowOf(spec, axis, p[axis]);
          size[axis] = windows[axis].end - windows[axis].begin;
          whole *= windows[axis].size;
        }
        double best = -INFINITY;
        double sum = 0;
        ForEachPoint(size, [&](const Triple& t) {
          const Triple q = {windows[0].begin + t[0], windows[1].begin + t[1],
                            windows[2].begin + t[2]};
          const double value = x[spec.input.Index(spec.channels_last, n, c, q)];
          if (!std::isnan(best) && !(value <= best)) best = value;
          sum += value;
        });
        const int64_t divisor = spec.exclusive ? size[0] * size[1] * size[2] : whole;
        values[out.Index(spec.channels_last, n, c, p)] =
            is_max ? best : sum / static_cast<double>(divisor);
      });
    }
  }
  return {{"Out", {Values(out.AsShape(spec.channels_last), values)}}};
}

OpCase Pool3dCase(const Pool3dSpec& spec, const std::string& kind) {
  const auto ints = [](const Triple& values) {
    return Ints{static_cast<int32_t>(values[0]), static_cast<int32_t>(values[1]),
                static_cast<int32_t>(values[2])};
  };
  OpCase op_case;
  op_case.name = kind + "_" + spec.name;
  op_case.type = "pool3d";
  op_case.inputs = {{"X", {Distinct(spec.input.AsShape(spec.channels_last), 1)}}};
  op_case.attrs = {{"pooling_type", kind},
                   {"ksize", ints(spec.kernel)},
                   {"strides", ints(spec.stride)},
                   {"exclusive", spec.exclusive}};
  for (const auto& [name, value] : spec.attrs) op_case.attrs[name] = value;
  if (spec.channels_last) op_case.attrs["data_format"] = std::string("NDHWC");
  op_case.reference = [spec, kind](const Arrays& inputs) {
    return Pool3dReference(spec, kind == "max", inputs);
  };
  op_case.outputs = {{"Out", 1}};
  op_case.gradients = {"X"};
  return op_case;
}

// The first of equal points of a window, in row-major order, takes the gradient.
OpCase Pool3dTiesCase() {
  OpCase op_case;
  op_case.name = "ties_go_to_the_first_point";
  op_case.type = "pool3d_grad";
  op_case.inputs = {{"X", {Values({1, 1, 2, 2, 3}, {0, 5, 5, 1, 2, 3, 0, 5, 1, 1, 2, 3})}},
                    {"Out", {Values({1, 1, 1, 1, 2}, {5, 5})}},
                    {"Out@GRAD", {Values({1, 1, 1, 1, 2}, {1, 10})}}};
  op_case.attrs = {{"pooling_type", std::string("max")}, {"ksize", Ints{2, 2, 2}}};
  op_case.reference = [](const Arrays&) {
    return Arrays{{"X@GRAD", {Values({1, 1, 2, 2, 3}, {0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})}}};
  };
  op_case.outputs = {{"X@GRAD", 1}};
  return op_case;
}

// NaNs at the first, at the last and at other places of windows, and a window with only the lowest
// number.
OpCase Pool3dNanCase(const std::string& kind) {
  const Pool3dSpec spec = {.name = "nan_and_infinities",
                           .input = {2, 3, {2, 4, 6}},
                           .output = {1, 2, 3},
                           .kernel = {2, 2, 2},
                           .stride = {2, 2, 2}};
  OpCase op_case = Pool3dCase(spec, kind);
  LazyValues& values = op_case.inputs.at("X")[0].values;
  for (size_t i = 0; i < values.size(); i += 37) values[i] = NAN;
  ForEachPoint({2, 2, 2},
               [&](const Triple& p) { values[spec.input.Index(false, 1, 0, p)] = -INFINITY; });
  op_case.gradients = {};
  return op_case;
}

OpCase Pool3dNanGradientCase() {
  OpCase op_case;
  op_case.name = "max_nan_takes_the_gradient_if_it_is_the_first";
  op_case.type = "pool3d_grad";
  op_case.inputs = {{"X", {Values({1, 1, 2, 2, 3}, {0, 5, 6, 1, NAN, 3, NAN, 5, 1, 1, 2, 9})}},
                    {"Out", {Values({1, 1, 1, 1, 2}, {NAN, NAN})}},
                    {"Out@GRAD", {Values({1, 1, 1, 1, 2}, {1, 10})}}};
  op_case.attrs = {{"pooling_type", std::string("max")}, {"ksize", Ints{2, 2, 2}}};
  op_case.reference = [](const Arrays&) {
    return Arrays{{"X@GRAD", {Values({1, 1, 2, 2, 3}, {0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0})}}};
  };
  op_case.outputs = {{"X@GRAD", 1}};
  return op_case;
}

// Windows at -1 and 2 of three along each axis: only the last one is on the volume. `nothing` is
// the result of the others.
AttributeMap PaddingAlone(const std::string& kind) {
  return {{"pooling_type", kind},
          {"ksize", Ints{1, 1, 1}},
          {"strides", Ints{3, 3, 3}},
          {"paddings", Ints{1, 1, 1}}};
}

OpCase Pool3dPaddingAloneCase(const std::string& kind, double nothing) {
  OpCase op_case;
  op_case.name = kind + "_window_on_padding_alone";
  op_case.type = "pool3d";
  op_case.inputs = {{"X", {Distinct({1, 2, 3, 3, 3}, 4)}}};
  op_case.attrs = PaddingAlone(kind);
  op_case.reference = [nothing](const Arrays& inputs) {
    std::vector<double> out(16, nothing);
    for (const size_t c : {0, 1}) out[8 * c + 7] = inputs.at("X")[0].values[27 * c + 26];
    return Arrays{{"Out", {Values({1, 2, 2, 2, 2}, out)}}};
  };
  op_case.outputs = {{"Out", 1}};
  return op_case;
}

OpCase PaddingAloneGradientCase(const std::string& kind) {
  OpCase op_case;
  op_case.name = kind + "_gradient_of_windows_on_padding_alone";
  op_case.type = "pool3d_grad";
  op_case.inputs = {{"X", {Distinct({1, 1, 3, 3, 3}, 4)}},
                    {"Out", {Values({1, 1, 2, 2, 2}, std::vector<double>(8))}},
                    {"Out@GRAD", {Values({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}}};
  op_case.inputs["Out"][0].values[7] = op_case.inputs["X"][0].values[26];
  op_case.attrs = PaddingAlone(kind);
  op_case.reference = [](const Arrays&) {
    std::vector<double> dx(27);
    dx[26] = 8;
    return Arrays{{"X@GRAD", {Values({1, 1, 3, 3, 3}, dx)}}};
  };
  op_case.outputs = {{"X@GRAD", 1}};
  return op_case;
}

}  // namespace

void AddPool3dCases(CaseList& cases) {
  const std::vector<Pool3dSpec> specs = {
      {.name = "side_by_side",
       .input = {2, 3, {4, 6, 4}},
       .output = {2, 3, 2},
       .kernel = {2, 2, 2},
       .stride = {2, 2, 2}},
      {.name = "overlap_with_padding",
       .input = {2, 2, {3, 7, 8}},
       .output = {2, 4, 4},
       .kernel = {3, 3, 3},
       .stride = {2, 2, 2},
       .padding = {1, 1, 1},
       .attrs = {{"paddings", Ints{1, 1, 1}}}},
      {.name = "padding_counts",
       .input = {1, 2, {3, 5, 6}},
       .output = {2, 3, 3},
       .kernel = {3, 3, 3},
       .stride = {2, 2, 2},
       .padding = {1, 1, 1},
       .exclusive = false,
       .attrs = {{"paddings", Ints{1, 1, 1}}}},
      {.name = "padded_unevenly",
       .input = {1, 2, {3, 4, 5}},
       .output = {3, 3, 6},
       .kernel = {2, 2, 2},
       .padding = {1, 0, 1},
       .attrs = {{"paddings", Ints{1, 0, 0, 0, 1, 1}}}},
      {.name = "rounded_up",
       .input = {1, 2, {4, 5, 6}},
       .output = {2, 2, 3},
       .kernel = {3, 3, 2},
       .stride = {2, 3, 2},
       .attrs = {{"ceil_mode", true}}},
      {.name = "any_layout",
       .input = {1, 2, {2, 3, 2}},
       .output = {1, 2, 1},
       .kernel = {2, 2, 2},
       .attrs = {{"data_format", std::string("AnyLayout")}}},
      {.name = "global",
       .input = {2, 3, {3, 4, 5}},
       .output = {1, 1, 1},
       .kernel = {3, 4, 5},
       .attrs = {{"global_pooling", true}, {"ksize", Ints{1, 1, 1}}, {"paddings", Ints{1, 1, 1}}}},
      {.name = "adaptive",
       .input = {2, 2, {3, 7, 5}},
       .output = {2, 3, 5},
       .kernel = {2, 3, 5},
       .adaptive = true,
       .attrs = {{"adaptive", true}}},
      {.name = "same",
       .input = {1, 2, {4, 5, 5}},
       .output = {2, 3, 5},
       .kernel = {3, 3, 2},
       .stride = {2, 2, 1},
       .padding = {0, 1, 0},
       .attrs = {{"padding_algorithm", std::string("SAME")}}},
      {.name = "valid",
       .input = {1, 2, {4, 5, 5}},
       .output = {2, 3, 4},
       .kernel = {3, 3, 2},
       .attrs = {{"padding_algorithm", std::string("VALID")}, {"paddings", Ints{1, 1, 1}}}},
      {.name = "channels_last",
       .input = {2, 3, {4, 5, 4}},
       .output = {2, 3, 3},
       .kernel = {2, 3, 2},
       .stride = {2, 1, 1},
       .channels_last = true},
      {.name = "no_volumes",
       .input = {0, 3, {4, 4, 4}},
       .output = {2, 2, 2},
       .kernel = {2, 2, 2},
       .stride = {2, 2, 2}},
  };
  for (const Pool3dSpec& spec : specs) {
    cases.push_back(Pool3dCase(spec, "max"));
    cases.push_back(Pool3dCase(spec, "avg"));
  }
  for (const char* kind : {"max", "avg"}) cases.push_back(Pool3dNanCase(kind));
  cases.push_back(Pool3dNanGradientCase());
  cases.push_back(Pool3dTiesCase());
  cases.push_back(
      Pool3dPaddingAloneCase("max", static_cast<double>(std::numeric_limits<float>::lowest())));
  // The lowest number depends on the dtype.
  cases.back().dtypes = {DType::kFloat32};
  cases.push_back(Pool3dPaddingAloneCase("avg", 0));
  cases.push_back(PaddingAloneGradientCase("max"));
  cases.push_back(PaddingAloneGradientCase("avg"));
}

}  // namespace skiff::harness
