#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

using AffineDims = std::vector<int32_t>;

double AffineBase(bool align_corners, int64_t i, int64_t size) {
  const auto k = static_cast<double>(i);
  const auto n = static_cast<double>(size);
  if (!align_corners) return (2 * k + 1) / n - 1;
  return size == 1 ? 0 : 2 * k / (n - 1) - 1;
}

Arrays AffineGridReference(const Arrays& inputs, const AffineDims& dims, bool align_corners) {
  const Array& theta = inputs.at("Theta")[0];
  const int axes = static_cast<int>(dims.size()) - 2;
  Shape shape = {theta.shape[0]};
  int64_t places = 1;
  for (int axis = 0; axis < axes; ++axis) {
    shape.Append(dims[static_cast<size_t>(axis + 2)]);
    places *= dims[static_cast<size_t>(axis + 2)];
  }
  shape.Append(axes);
  std::vector<double> values;
  for (int64_t n = 0; n < theta.shape[0]; ++n) {
    for (int64_t p = 0; p < places; ++p) {
      std::vector<double> base(static_cast<size_t>(axes + 1), 1.0);
      int64_t rest = p;
      for (int k = 0; k < axes; ++k) {
        const int64_t size = shape[axes - k];
        base[static_cast<size_t>(k)] = AffineBase(align_corners, rest % size, size);
        rest /= size;
      }
      for (int row = 0; row < axes; ++row) {
        double sum = 0;
        for (int k = 0; k <= axes; ++k) {
          sum += theta.values[static_cast<size_t>(((n * axes) + row) * (axes + 1) + k)] *
                 base[static_cast<size_t>(k)];
        }
        values.push_back(sum);
      }
    }
  }
  return {{"Output", {Values(shape, values)}}};
}

}  // namespace

void AddAffineGridCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& theta, const AffineDims& dims,
                       bool align_corners) {
    OpCase made{.name = name,
                .type = "affine_grid",
                .inputs = {{"Theta", {Uniform(theta, 1)}}},
                .attrs = {{"output_shape", dims}, {"align_corners", align_corners}},
                .outputs = {{"Output", 1}},
                .gradients = {"Theta"}};
    made.reference = [=](const Arrays& inputs) {
      return AffineGridReference(inputs, dims, align_corners);
    };
    cases.push_back(std::move(made));
  };
  for (const bool align_corners : {false, true}) {
    const std::string suffix = align_corners ? "_corners" : "_ends";
    add("image" + suffix, {2, 2, 3}, {2, 3, 4, 5}, align_corners);
    add("volume" + suffix, {2, 3, 4}, {2, 1, 2, 3, 4}, align_corners);
    add("one_row" + suffix, {1, 2, 3}, {1, 3, 1, 4}, align_corners);
    add("one_place" + suffix, {1, 3, 4}, {1, 1, 1, 1, 1}, align_corners);
    add("several_threads" + suffix, {3, 2, 3}, {3, 1, 90, 40}, align_corners);
  }
  add("batch_of_theta", {3, 2, 3}, {-1, 4, 2, 3}, true);
  add("no_images", {0, 2, 3}, {0, 3, 4, 5}, true);
  add("no_places", {2, 2, 3}, {2, 3, 0, 5}, true);
  add("images_64x56x56", {64, 2, 3}, {64, 3, 56, 56}, false);
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
