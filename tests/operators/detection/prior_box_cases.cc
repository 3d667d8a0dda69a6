#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct PriorBoxSpec {
  std::vector<float> min_sizes = {4.0f, 6.0f};
  std::vector<float> max_sizes = {};
  std::vector<float> ratios = {2.0f};
  bool flips = false;
  bool clips = false;
  float step_w = 0;
  float step_h = 0;
  float offset = 0.5f;
  bool most_is_second = false;
};

// The width and the height of each box of a cell.
std::vector<std::array<double, 2>> PriorBoxExtents(const PriorBoxSpec& spec) {
  std::vector<double> ratios;
  for (const float ratio : spec.ratios) {
    if (std::abs(ratio - 1.0f) < 1e-6f) continue;
    if (std::ranges::any_of(ratios, [&](double r) { return std::abs(r - ratio) < 1e-6; })) continue;
    ratios.push_back(ratio);
    if (spec.flips) ratios.push_back(1 / double{ratio});
  }
  std::vector<std::array<double, 2>> extents;
  for (size_t i = 0; i < spec.min_sizes.size(); ++i) {
    const double size = spec.min_sizes[i];
    const double middle = spec.max_sizes.empty() ? 0 : std::sqrt(size * double{spec.max_sizes[i]});
    extents.push_back({size, size});
    if (spec.most_is_second && middle > 0) extents.push_back({middle, middle});
    for (const double ratio : ratios)
      extents.push_back({size * std::sqrt(ratio), size / std::sqrt(ratio)});
    if (!spec.most_is_second && middle > 0) extents.push_back({middle, middle});
  }
  return extents;
}

Arrays PriorBoxReference(const PriorBoxSpec& spec, const std::vector<float>& variances,
                         const Arrays& inputs) {
  const Shape& map = inputs.at("Input")[0].shape;
  const Shape& image = inputs.at("Image")[0].shape;
  const auto height = static_cast<double>(image[2]);
  const auto width = static_cast<double>(image[3]);
  const bool has_steps = spec.step_w != 0 && spec.step_h != 0;
  const double step_x = has_steps ? spec.step_w : width / static_cast<double>(map[3]);
  const double step_y = has_steps ? spec.step_h : height / static_cast<double>(map[2]);
  const auto extents = PriorBoxExtents(spec);
  std::vector<double> boxes;
  std::vector<double> all_variances;
  for (int64_t cell = 0; cell < map[2] * map[3]; ++cell) {
    const double x = (static_cast<double>(cell % map[3]) + double{spec.offset}) * step_x;
    const double y = (static_cast<double>(cell / map[3]) + double{spec.offset}) * step_y;
    for (const auto& [w, h] : extents) {
      for (const double end :
           {(x - w / 2) / width, (y - h / 2) / height, (x + w / 2) / width, (y + h / 2) / height}) {
        boxes.push_back(spec.clips ? std::clamp(end, 0.0, 1.0) : end);
      }
      all_variances.insert(all_variances.end(), variances.begin(), variances.end());
    }
  }
  const Shape shape = {map[2], map[3], std::ssize(extents), 4};
  return {{"Boxes", {Values(shape, std::move(boxes))}},
          {"Variances", {Values(shape, std::move(all_variances))}}};
}

OpCase PriorBoxCase(const std::string& name, const Shape& map, const Shape& image,
                    const PriorBoxSpec& spec) {
  const std::vector<float> variances = {0.1f, 0.15f, 0.2f, 0.25f};
  return {
      .name = name,
      .type = "prior_box",
      .inputs = {{"Input", {Uniform(map, 1)}}, {"Image", {Uniform(image, 2)}}},
      .attrs = {{"min_sizes", spec.min_sizes},
                {"max_sizes", spec.max_sizes},
                {"aspect_ratios", spec.ratios},
                {"variances", variances},
                {"flip", spec.flips},
                {"clip", spec.clips},
                {"step_w", spec.step_w},
                {"step_h", spec.step_h},
                {"offset", spec.offset},
                {"min_max_aspect_ratios_order", spec.most_is_second}},
      .reference = [=](const Arrays& inputs) { return PriorBoxReference(spec, variances, inputs); },
      .outputs = {{"Boxes", 1}, {"Variances", 1}}};
}

}  // namespace

void AddPriorBoxCases(CaseList& cases) {
  const Shape map = {2, 3, 2, 4};
  const Shape image = {2, 3, 20, 30};
  cases.push_back(PriorBoxCase("min_sizes", map, image, {}));
  cases.push_back(PriorBoxCase("max_sizes", map, image, {.max_sizes = {5.0f, 9.0f}}));
  cases.push_back(PriorBoxCase("max_is_second", map, image,
                               {.max_sizes = {5.0f, 9.0f}, .flips = true, .most_is_second = true}));
  cases.push_back(PriorBoxCase("flipped", map, image, {.ratios = {2.0f, 3.0f}, .flips = true}));
  cases.push_back(PriorBoxCase("repeated_ratios", map, image,
                               {.ratios = {1.0f, 2.0f, 0.5f, 2.0f}, .flips = true}));
  cases.push_back(PriorBoxCase("no_ratios", map, image, {.ratios = {}}));
  cases.push_back(PriorBoxCase("no_sizes", map, image, {.min_sizes = {}}));
  cases.push_back(PriorBoxCase("clipped", map, image, {.min_sizes = {12.0f}, .clips = true}));
  cases.push_back(PriorBoxCase("steps", map, image, {.step_w = 5, .step_h = 6, .offset = 0.25f}));
  cases.push_back(PriorBoxCase("one_step", map, image, {.step_w = 5}));
  cases.push_back(PriorBoxCase("no_images", {0, 3, 2, 2}, {0, 3, 8, 8}, {}));
  cases.push_back(PriorBoxCase("no_cells", {1, 3, 0, 2}, {1, 3, 8, 8}, {}));
  cases.push_back(PriorBoxCase("many", {1, 1, 38, 38}, {1, 1, 300, 300},
                               {.max_sizes = {60.0f, 111.0f}, .clips = true}));
  cases.push_back(PriorBoxCase("benchmark", {8, 512, 38, 38}, {8, 3, 300, 300},
                               {.min_sizes = {30.0f}, .max_sizes = {60.0f}, .flips = true}));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
