#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct GridSpec {
  std::string mode = "bilinear";
  std::string padding = "zeros";
  bool align_corners = true;
};

std::string NameOfGrid(const GridSpec& spec) {
  return spec.mode + "_" + spec.padding + (spec.align_corners ? "_corners" : "_ends");
}

// A position of the axis for a coordinate of the grid.
double GridPosition(const GridSpec& spec, double coordinate, int64_t size) {
  const auto n = static_cast<double>(size);
  return spec.align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
}

// The position after the padding: each reflection mirrors it at one end.
double GridPadded(const GridSpec& spec, double position, int64_t size) {
  const double low = spec.align_corners ? 0 : -0.5;
  const double high = static_cast<double>(size - 1) - low;
  if (spec.padding == "zeros" || (position >= low && position <= high)) return position;
  if (spec.padding == "border") return std::clamp(position, 0.0, static_cast<double>(size - 1));
  if (high <= low) return 0;
  while (position < low || position > high) {
    position = position < low ? 2 * low - position : 2 * high - position;
  }
  return position;
}

double GridCubic(double distance) {
  const double a = -0.75;
  const double d = std::abs(distance);
  if (d >= 2) return 0;
  return d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1
                : a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
}

// The weights of all elements of an axis.
std::vector<double> GridWeights(const GridSpec& spec, double coordinate, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  std::vector<double> weights(static_cast<size_t>(size), 0.0);
  double position = GridPosition(spec, coordinate, size);
  if (spec.mode != "bicubic") position = GridPadded(spec, position, size);
  if (std::isnan(position)) {
    weights[0] = position;
    return weights;
  }
  if (spec.mode != "bicubic") {
    if (spec.padding != "zeros") position = std::clamp(position, 0.0, last);
    if (spec.mode == "nearest") position = std::nearbyint(position);
    for (int64_t i = 0; i < size; ++i) {
      weights[static_cast<size_t>(i)] =
          std::max(0.0, 1 - std::abs(position - static_cast<double>(i)));
    }
    return weights;
  }
  const double floor = std::floor(position);
  for (int step = -1; step <= 2; ++step) {
    const double inside = GridPadded(spec, floor + step, size);
    if (inside < 0 || inside > last) continue;
    weights[static_cast<size_t>(inside)] += GridCubic(position - floor - step);
  }
  return weights;
}

// Of place `place` of all images, the weight of each element of a channel.
std::vector<double> GridWeightsOfPlace(const GridSpec& spec, const Shape& x, const double* place) {
  std::vector<double> weights = {1.0};
  for (int axis = 2; axis < x.rank(); ++axis) {
    const std::vector<double> along = GridWeights(spec, place[x.rank() - 1 - axis], x[axis]);
    std::vector<double> products;
    for (const double before : weights) {
      for (const double weight : along) products.push_back(before * weight);
    }
    weights = std::move(products);
  }
  return weights;
}

struct GridSizes {
  size_t images, channels, elements, places, axes;
};

GridSizes GridSizesOf(const Arrays& inputs) {
  const Shape& x = inputs.at("X")[0].shape;
  const Shape& grid = inputs.at("Grid")[0].shape;
  return {static_cast<size_t>(x[0]), static_cast<size_t>(x[1]),
          static_cast<size_t>(x.element_count(2, x.rank())),
          static_cast<size_t>(grid.element_count(1, grid.rank() - 1)),
          static_cast<size_t>(x.rank() - 2)};
}

Arrays GridSamplerReference(const GridSpec& spec, const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& grid = inputs.at("Grid")[0];
  const GridSizes of = GridSizesOf(inputs);
  Shape shape = grid.shape;
  for (int axis = x.shape.rank() - 1; axis >= 2; --axis) shape[axis] = grid.shape[axis - 1];
  shape[1] = x.shape[1];
  Array out = Values(shape, std::vector<double>(of.images * of.channels * of.places, 0.0));
  for (size_t n = 0; n < of.images; ++n) {
    for (size_t p = 0; p < of.places; ++p) {
      const std::vector<double> weights =
          GridWeightsOfPlace(spec, x.shape, grid.values.data() + (n * of.places + p) * of.axes);
      for (size_t c = 0; c < of.channels; ++c) {
        double& sum = out.values[(n * of.channels + c) * of.places + p];
        for (size_t i = 0; i < of.elements; ++i)
          sum += weights[i] * x.values[(n * of.channels + c) * of.elements + i];
      }
    }
  }
  return {{"Output", {std::move(out)}}};
}

// Whether bilinear sampling has a slope of 0 along an axis though its weights may change: at the
// outer elements of an image that goes on beyond them.
bool IsAtEnd(const GridSpec& spec, double coordinate, int64_t size) {
  if (spec.mode != "bilinear" || spec.padding == "zeros") return false;
  const double position = GridPadded(spec, GridPosition(spec, coordinate, size), size);
  return position <= 0 || position >= static_cast<double>(size - 1);
}

// Grid@GRAD by differences, with all the digits that float32 has. At a whole position, the slope of
// bilinear is that towards the next element.
Arrays GridSamplerGradReference(const GridSpec& spec, const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& given = inputs.at("Output@GRAD")[0];
  const GridSizes of = GridSizesOf(inputs);
  Array dx = Values(x.shape, std::vector<double>(x.values.size(), 0.0));
  Array dgrid = inputs.at("Grid")[0];
  std::vector<double> grid = inputs.at("Grid")[0].values;
  const double step = 1e-6;
  const double step_back = spec.mode == "bilinear" ? 0 : step;
  for (size_t n = 0; n < of.images; ++n) {
    for (size_t p = 0; p < of.places; ++p) {
      double* place = grid.data() + (n * of.places + p) * of.axes;
      const std::vector<double> weights = GridWeightsOfPlace(spec, x.shape, place);
      std::vector<std::vector<double>> slopes;
      for (size_t axis = 0; axis < of.axes; ++axis) {
        const double kept = place[axis];
        place[axis] = kept + step;
        slopes.push_back(GridWeightsOfPlace(spec, x.shape, place));
        place[axis] = kept - step_back;
        const std::vector<double> before = GridWeightsOfPlace(spec, x.shape, place);
        place[axis] = kept;
        const bool is_flat =
            IsAtEnd(spec, kept, x.shape[x.shape.rank() - 1 - static_cast<int>(axis)]);
        for (double& slope : slopes[axis]) {
          const double change = slope - before[static_cast<size_t>(&slope - slopes[axis].data())];
          slope = is_flat ? 0 : change / (step + step_back);
        }
      }
      for (size_t axis = 0; axis < of.axes; ++axis)
        dgrid.values[(n * of.places + p) * of.axes + axis] = 0;
      for (size_t c = 0; c < of.channels; ++c) {
        const size_t channel = n * of.channels + c;
        const double gradient = given.values[channel * of.places + p];
        for (size_t i = 0; i < of.elements; ++i) {
          dx.values[channel * of.elements + i] += weights[i] * gradient;
          for (size_t axis = 0; axis < of.axes; ++axis) {
            dgrid.values[(n * of.places + p) * of.axes + axis] +=
                slopes[axis][i] * gradient * x.values[channel * of.elements + i];
          }
        }
      }
    }
  }
  return {{"X@GRAD", {std::move(dx)}}, {"Grid@GRAD", {std::move(dgrid)}}};
}

// Places in and around images of x, none of which is near a whole position or half way between two,
// where results or their slopes jump.
Array PlacesAround(const GridSpec& spec, const Shape& x, const Shape& grid, uint64_t seed) {
  Array places = Uniform(grid, seed, 0.1, 0.4);
  const Array halves = Integers(grid, seed + 1, 0, 2);
  const Array cells = Integers(grid, seed + 2, 0, 1 << 20);
  const auto axes = static_cast<size_t>(x.rank() - 2);
  for (size_t i = 0; i < places.values.size(); ++i) {
    const int64_t size = x[x.rank() - 1 - static_cast<int>(i % axes)];
    const auto cell = static_cast<double>(static_cast<int64_t>(cells.values[i]) % (size + 4) - 2);
    const double position = cell + halves.values[i] / 2 + places.values[i];
    const auto n = static_cast<double>(size);
    places.values[i] = spec.align_corners ? (size == 1 ? position : 2 * position / (n - 1) - 1)
                                          : (2 * position + 1) / n - 1;
  }
  return places;
}

OpCase GridCase(const std::string& name, const GridSpec& spec, const Shape& x, const Array& grid) {
  OpCase made{.name = name,
              .type = "grid_sampler",
              .inputs = {{"X", {Uniform(x, 1)}}, {"Grid", {grid}}},
              .attrs = {{"mode", spec.mode},
                        {"padding_mode", spec.padding},
                        {"align_corners", spec.align_corners}},
              .outputs = {{"Output", 1}},
              .gradients = {"X", "Grid"}};
  made.reference = [spec](const Arrays& inputs) { return GridSamplerReference(spec, inputs); };
  return made;
}

OpCase GridGradCase(const std::string& name, const GridSpec& spec, const Shape& x,
                    const Array& grid) {
  OpCase made = GridCase(name, spec, x, grid);
  made.type = "grid_sampler_grad";
  made.inputs["Output@GRAD"] = {
      Uniform(GridSamplerReference(spec, made.inputs).at("Output")[0].shape, 3)};
  made.reference = [spec](const Arrays& inputs) { return GridSamplerGradReference(spec, inputs); };
  made.outputs = {{"X@GRAD", 1}, {"Grid@GRAD", 1}};
  made.gradients = {};
  made.dtypes = {DType::kFloat32};
  return made;
}

// Gradients at the ends of the axes, and at whole positions: with corners at -1, 0 and 1, with ends
// at -0.75 and 0.75 of the axis of four elements.
void AddGradientsAtElements(CaseList& cases) {
  const Array of_image = Values({1, 2, 4, 2}, {-1, -1, 1, 1, 0, -0.75, -1, 0.75,  //
                                               1, 0, -0.25, 1, 0.25, -1, 0, 0});
  const Array of_volume =
      Values({1, 2, 1, 3, 3}, {-1, -1, 1, 1, 0, -0.75, -1, 1, 0.75, 0, 1, 0, 1, -1, -1, 1, 1, 1});
  for (const char* mode : {"bilinear", "bicubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align_corners : {false, true}) {
        const GridSpec spec{mode, padding, align_corners};
        const std::string name = "gradients_at_elements_" + NameOfGrid(spec);
        cases.push_back(GridGradCase(name, spec, {1, 2, 4, 3}, of_image));
        cases.push_back(GridGradCase(name + "_of_one_row", spec, {1, 2, 1, 5}, of_image));
        if (spec.mode == "bicubic") continue;
        cases.push_back(GridGradCase(name + "_of_a_volume", spec, {1, 2, 4, 1, 3}, of_volume));
      }
    }
  }
}

}  // namespace

void AddGridSamplerCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const GridSpec& spec, const Shape& x,
                       const Array& grid) { cases.push_back(GridCase(name, spec, x, grid)); };
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align_corners : {false, true}) {
        const GridSpec spec{mode, padding, align_corners};
        const Shape image = {2, 3, 4, 5};
        add(NameOfGrid(spec), spec, image, PlacesAround(spec, image, {2, 3, 4, 2}, 1));
        if (spec.mode == "bicubic") continue;
        const Shape volume = {2, 2, 3, 4, 2};
        add("volume_" + NameOfGrid(spec), spec, volume,
            PlacesAround(spec, volume, {2, 2, 3, 2, 3}, 2));
      }
    }
  }
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
      // One element along an axis, with corners all places are on it.
      const GridSpec ends{mode, padding, false};
      add("one_element_" + NameOfGrid(ends), ends, {1, 2, 1, 1},
          PlacesAround(ends, {1, 2, 1, 1}, {1, 2, 2, 2}, 3));
      const GridSpec corners{mode, padding, true};
      add("one_row_" + NameOfGrid(corners), corners, {1, 2, 1, 3},
          PlacesAround(corners, {1, 2, 1, 3}, {1, 2, 2, 2}, 4));
      // Coordinates of the corners and of the center, of NaN and of numbers far outside.
      add("exact_" + NameOfGrid(corners), corners, {1, 2, 3, 5},
          Values({1, 1, 4, 2}, {-1, -1, 1, 1, 0, 0, 0.5, -1}));
      cases.back().gradients = {};
      const double nan = std::numeric_limits<double>::quiet_NaN();
      add("nan_" + NameOfGrid(ends), ends, {1, 2, 3, 4}, Values({1, 1, 2, 2}, {nan, 0, 0.1, nan}));
      cases.back().gradients = {};
      if (std::string(padding) == "reflection") continue;
      add("far_outside_" + NameOfGrid(ends), ends, {1, 2, 3, 4},
          Values({1, 2, 2, 2}, {1e30, 0.1, -1e30, 0.1, 0.3, 3e9, 0.3, -7e18}));
      cases.back().gradients = {};
    }
  }
  // Halves go to the even element.
  add("nearest_half_way", {"nearest", "zeros", true}, {1, 1, 5, 5},
      Values({1, 1, 4, 2}, {-0.75, 0, -0.25, 0, 0.25, -0.75, 0.75, 1}));
  cases.back().gradients = {};
  add("no_images", {}, {0, 3, 4, 5}, Uniform({0, 2, 2, 2}, 6));
  add("no_places", {}, {2, 3, 4, 5}, Uniform({2, 0, 2, 2}, 6));
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    const GridSpec spec{mode, "reflection", false};
    const Shape image = {3, 20, 12, 9};
    const Shape grid = {3, 11, 13, 2};
    add(std::string("several_threads_") + mode, spec, image, PlacesAround(spec, image, grid, 7));
    cases.back().gradients = {};
    cases.back().dtypes = {DType::kFloat32};
    cases.push_back(GridGradCase(std::string("gradients_of_several_threads_") + mode, spec, image,
                                 PlacesAround(spec, image, grid, 5)));
  }
  const GridSpec spec;
  const Shape volume = {2, 9, 4, 5, 3};
  cases.push_back(GridGradCase("gradients_of_a_volume", spec, volume,
                               PlacesAround(spec, volume, {2, 3, 4, 5, 3}, 5)));
  AddGradientsAtElements(cases);
  add("decoder_8x64x56x56", spec, {8, 64, 56, 56}, Uniform({8, 56, 56, 2}, 8));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
