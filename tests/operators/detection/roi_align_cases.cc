#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tests/operators/detection/test_boxes.h"

namespace skiff::harness {
namespace {

struct RoiAlignSpec {
  int32_t height = 2;
  int32_t width = 3;
  float scale = 1;
  int32_t ratio = -1;
  bool aligned = false;
};

// The value of a channel at a place, between its pixels.
double RoiAlignPixel(const double* channel, int64_t height, int64_t width, double y, double x) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width))
    return 0;
  y = std::clamp(y, 0.0, static_cast<double>(height - 1));
  x = std::clamp(x, 0.0, static_cast<double>(width - 1));
  double sum = 0;
  for (int64_t i = 0; i < height; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const double of_row = std::max(0.0, 1 - std::abs(y - static_cast<double>(i)));
      const double of_column = std::max(0.0, 1 - std::abs(x - static_cast<double>(j)));
      if (of_row * of_column > 0) sum += of_row * of_column * channel[i * width + j];
    }
  }
  return sum;
}

struct RoiAlignBin {
  double begin;
  double extent;
  double samples;
};

RoiAlignBin RoiAlignBinOf(const RoiAlignSpec& spec, double begin, double end, int32_t bins,
                          int64_t bin) {
  const double offset = spec.aligned ? 0.5 : 0;
  const double from = begin * double{spec.scale} - offset;
  const double to = end * double{spec.scale} - offset;
  if (!(std::abs(from) <= 1e6 && std::abs(to) <= 1e6)) return {std::nan(""), std::nan(""), 1};
  double extent = to - from;
  if (!spec.aligned) extent = std::max(extent, 1.0);
  const double of_bin = extent / bins;
  return {from + of_bin * static_cast<double>(bin), of_bin,
          spec.ratio > 0 ? spec.ratio : std::max(0.0, std::ceil(of_bin))};
}

double RoiAlignAverage(const double* channel, const Shape& x, const RoiAlignBin& rows,
                       const RoiAlignBin& columns) {
  if (std::isnan(rows.begin) || std::isnan(columns.begin)) return std::nan("");
  double sum = 0;
  for (double i = 0.5; i < rows.samples; ++i) {
    for (double j = 0.5; j < columns.samples; ++j) {
      sum += RoiAlignPixel(channel, x[2], x[3], rows.begin + i * rows.extent / rows.samples,
                           columns.begin + j * columns.extent / columns.samples);
    }
  }
  return sum / std::max(1.0, rows.samples * columns.samples);
}

std::vector<int64_t> RoiAlignImages(const Arrays& inputs) {
  std::vector<int64_t> images;
  if (inputs.contains("RoisNum")) {
    const LazyValues& counts = inputs.at("RoisNum")[0].values;
    for (size_t i = 0; i < counts.size(); ++i)
      images.insert(images.end(), static_cast<size_t>(counts[i]), static_cast<int64_t>(i));
    return images;
  }
  const std::vector<uint64_t>& offsets = inputs.at("ROIs")[0].lod.back();
  for (size_t i = 1; i < offsets.size(); ++i)
    images.insert(images.end(), offsets[i] - offsets[i - 1], static_cast<int64_t>(i - 1));
  return images;
}

Arrays RoiAlignReference(const RoiAlignSpec& spec, const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const auto rois = BoxesOf(inputs.at("ROIs")[0]);
  const std::vector<int64_t> images = RoiAlignImages(inputs);
  std::vector<double> out;
  for (size_t r = 0; r < rois.size(); ++r) {
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      const double* channel =
          x.values.data() + (images[r] * x.shape[1] + c) * x.shape[2] * x.shape[3];
      for (int64_t bin = 0; bin < spec.height * spec.width; ++bin) {
        out.push_back(RoiAlignAverage(
            channel, x.shape,
            RoiAlignBinOf(spec, rois[r][1], rois[r][3], spec.height, bin / spec.width),
            RoiAlignBinOf(spec, rois[r][0], rois[r][2], spec.width, bin % spec.width)));
      }
    }
  }
  return {
      {"Out", {Values({std::ssize(rois), x.shape[1], spec.height, spec.width}, std::move(out))}}};
}

OpCase RoiAlignCase(const std::string& name, Arrays inputs, const RoiAlignSpec& spec) {
  return {.name = name,
          .type = "roi_align",
          .inputs = std::move(inputs),
          .attrs = {{"pooled_height", spec.height},
                    {"pooled_width", spec.width},
                    {"spatial_scale", spec.scale},
                    {"sampling_ratio", spec.ratio},
                    {"aligned", spec.aligned}},
          .reference = [=](const Arrays& inputs) { return RoiAlignReference(spec, inputs); },
          .outputs = {{"Out", 1}},
          .gradients = {"X"}};
}

// Regions of 3 images, in an order of sequences.
Arrays RaggedRois(uint64_t seed, double size = 8) {
  return {{"X", {Uniform({3, 2, 7, 9}, seed)}},
          {"ROIs", {Ragged(RandomBoxes({4, 4}, seed + 1, size), {1, 0, 3})}}};
}

Arrays CountedRois(Array rois, const std::vector<double>& counts, uint64_t seed) {
  return {{"X", {Uniform({std::ssize(counts), 3, 6, 5}, seed)}},
          {"ROIs", {std::move(rois)}},
          {"RoisNum", {Values({std::ssize(counts)}, counts, DType::kInt32)}}};
}

}  // namespace

void AddRoiAlignCases(CaseList& cases) {
  cases.push_back(RoiAlignCase("ragged", RaggedRois(1), {}));
  cases.push_back(RoiAlignCase("aligned", RaggedRois(3), {.aligned = true}));
  cases.push_back(RoiAlignCase("scaled", RaggedRois(5, 30), {.scale = 0.25f, .aligned = true}));
  cases.push_back(RoiAlignCase("ratio", RaggedRois(7), {.ratio = 2}));
  cases.push_back(RoiAlignCase("ratio_of_one", RaggedRois(9), {.ratio = 1, .aligned = true}));
  cases.push_back(
      RoiAlignCase("counts", CountedRois(RandomBoxes({4, 4}, 11, 5), {3, 0, 1}, 12), {}));
  cases.push_back(RoiAlignCase("one_bin", CountedRois(RandomBoxes({2, 4}, 13, 5), {2}, 14),
                               {.height = 1, .width = 1, .aligned = true}));
  cases.push_back(RoiAlignCase("small_bins", CountedRois(RandomBoxes({2, 4}, 15, 5), {1, 1}, 16),
                               {.height = 5, .width = 7}));
  // Beyond each border, the whole image and much more, a single place, inside out.
  const Array odd = Values({6, 4}, {-3, -4, 2, 1, 3,     2,    9.5, 12,    //
                                    0,  0,  5, 6, -1000, -900, 800, 1200,  //
                                    2,  2,  2, 2, 4.5,   3.5,  1,   0.5});
  cases.push_back(RoiAlignCase("odd_regions", CountedRois(odd, {2, 4}, 17), {}));
  cases.push_back(
      RoiAlignCase("odd_regions_aligned", CountedRois(odd, {2, 4}, 19), {.aligned = true}));
  cases.push_back(RoiAlignCase("odd_regions_with_ratio", CountedRois(odd, {6}, 21),
                               {.ratio = 3, .aligned = true}));
  // Beyond 10^6 pixels to each side, also inside out; the last one is near.
  const Array far =
      Values({7, 4}, {0, 0, 2e6,  3, -3e6, 0, 5,     5,     1e30,  1e30, 1e30, 1e30,  //
                      0, 0, -2e6, 5, 0,    0, -1e10, -1e10, -1e30, 0,    1e30, 5,     //
                      1, 1, 4,    5});
  for (const bool aligned : {false, true}) {
    for (const int32_t ratio : {-1, 2}) {
      cases.push_back(RoiAlignCase(
          StrCat("far_regions", aligned ? "_aligned" : "", ratio > 0 ? "_with_ratio" : ""),
          CountedRois(far, {3, 4}, 29), {.ratio = ratio, .aligned = aligned}));
      cases.back().gradients = {};  // NaN has no differences
    }
  }
  cases.push_back(RoiAlignCase("no_regions", CountedRois(RandomBoxes({0, 4}, 23), {0, 0}, 24), {}));
  cases.push_back(RoiAlignCase("many",
                               {{"X", {Uniform({2, 16, 20, 24}, 25)}},
                                {"ROIs", {Ragged(RandomBoxes({60, 4}, 26, 20), {25, 35})}}},
                               {.height = 7, .width = 7}));
  cases.push_back(RoiAlignCase("benchmark",
                               {{"X", {Uniform({2, 256, 50, 68}, 27)}},
                                {"ROIs", {Ragged(RandomBoxes({512, 4}, 28, 800), {256, 256})}}},
                               {.height = 7, .width = 7, .scale = 0.0625f, .ratio = 2}));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
