#include <algorithm>
#include <limits>

#include "tests/operators/detection/test_boxes.h"

namespace skiff::harness {
namespace {

// The length of the part that two ranges share.
double SharedByRanges(double a_begin, double a_end, double b_begin, double b_end, double offset) {
  return std::max(0.0, std::min(a_end, b_end) - std::max(a_begin, b_begin) + offset);
}

Arrays IouSimilarityReference(const Arrays& inputs, bool normalized) {
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  const double offset = normalized ? 0 : 1;
  std::vector<double> out;
  for (const auto& a : BoxesOf(x)) {
    for (const auto& b : BoxesOf(y)) {
      const double both = SharedByRanges(a[0], a[2], b[0], b[2], offset) *
                          SharedByRanges(a[1], a[3], b[1], b[3], offset);
      const double of_a = (a[2] - a[0] + offset) * (a[3] - a[1] + offset);
      const double of_b = (b[2] - b[0] + offset) * (b[3] - b[1] + offset);
      out.push_back(both / (of_a + of_b - both + 1e-10));
    }
  }
  Array overlaps = Values({x.shape[0], y.shape[0]}, std::move(out));
  overlaps.lod = x.lod;
  return {{"Out", {std::move(overlaps)}}};
}

OpCase IouSimilarityCase(const std::string& name, Array x, Array y, bool normalized = true) {
  return {
      .name = name,
      .type = "iou_similarity",
      .inputs = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
      .attrs = {{"box_normalized", normalized}},
      .reference = [=](const Arrays& inputs) { return IouSimilarityReference(inputs, normalized); },
      .outputs = {{"Out", 1}}};
}

}  // namespace

void AddIouSimilarityCases(CaseList& cases) {
  cases.push_back(IouSimilarityCase("normalized", RandomBoxes({7, 4}, 1), RandomBoxes({5, 4}, 2)));
  cases.push_back(
      IouSimilarityCase("pixels", RandomBoxes({7, 4}, 3, 40), RandomBoxes({5, 4}, 4, 40), false));
  cases.push_back(IouSimilarityCase("ragged", Ragged(RandomBoxes({6, 4}, 5), {4, 0, 2}),
                                    RandomBoxes({3, 4}, 6)));
  // The same, inside, touching, apart, without area, with its corners exchanged.
  const Array edges = Values({6, 4}, {1, 1, 3, 3, 1.5, 1.5, 2, 2, 3, 1, 5, 3,  //
                                      4, 4, 5, 5, 1,   1,   1, 3, 3, 3, 1, 1});
  cases.push_back(IouSimilarityCase("edges", edges, edges));
  cases.push_back(IouSimilarityCase("edges_of_pixels", edges, edges, false));
  cases.push_back(IouSimilarityCase("one", RandomBoxes({1, 4}, 7), RandomBoxes({1, 4}, 8)));
  cases.push_back(IouSimilarityCase("no_x", RandomBoxes({0, 4}, 9), RandomBoxes({3, 4}, 10)));
  cases.push_back(IouSimilarityCase("no_y", RandomBoxes({3, 4}, 9), RandomBoxes({0, 4}, 10)));
  cases.push_back(IouSimilarityCase("many", RandomBoxes({80, 4}, 11), RandomBoxes({301, 4}, 12)));
  cases.push_back(
      IouSimilarityCase("benchmark", RandomBoxes({64, 4}, 13), RandomBoxes({8732, 4}, 14)));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
