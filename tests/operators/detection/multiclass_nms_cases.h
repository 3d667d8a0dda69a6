// The cases that multiclass_nms, multiclass_nms2 and multiclass_nms3 share.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "tests/operators/detection/test_boxes.h"

namespace skiff::harness {

struct MulticlassNmsSpec {
  std::string type;
  int32_t background_label = 0;
  float score_threshold = 0.2f;
  int32_t nms_top_k = -1;
  float nms_threshold = 0.3f;
  float nms_eta = 1;
  int32_t keep_top_k = -1;
  bool normalized = true;

  bool has_index() const { return type != "multiclass_nms"; }
  bool has_counts() const { return type == "multiclass_nms3"; }
};

// A box of a class, as an image has it.
struct NmsCandidate {
  int64_t label;
  int64_t position;  // of the box in BBoxes
  double score;
  std::array<double, 4> box;
};
using NmsCandidates = std::vector<NmsCandidate>;

inline double NmsArea(const std::array<double, 4>& box, double offset) {
  if (box[2] < box[0] || box[3] < box[1]) return 0;
  return (box[2] - box[0] + offset) * (box[3] - box[1] + offset);
}

inline double NmsOverlap(const std::array<double, 4>& a, const std::array<double, 4>& b,
                         double offset) {
  double shared = 1;
  for (size_t axis = 0; axis < 2; ++axis) {
    if (a[axis] > b[axis + 2] || b[axis] > a[axis + 2]) return 0;
    shared *= std::min(a[axis + 2], b[axis + 2]) - std::max(a[axis], b[axis]) + offset;
  }
  return shared / (NmsArea(a, offset) + NmsArea(b, offset) - shared);
}

inline void SortNmsByScore(NmsCandidates& all) {
  std::stable_sort(all.begin(), all.end(), [](const NmsCandidate& a, const NmsCandidate& b) {
    return static_cast<float>(a.score) > static_cast<float>(b.score);
  });
}

inline NmsCandidates NmsOfClass(const MulticlassNmsSpec& spec, NmsCandidates all) {
  std::erase_if(all,
                [&](const NmsCandidate& each) { return !(each.score > spec.score_threshold); });
  SortNmsByScore(all);
  if (spec.nms_top_k >= 0 && spec.nms_top_k < std::ssize(all))
    all.resize(static_cast<size_t>(spec.nms_top_k), all[0]);
  double threshold = spec.nms_threshold;
  NmsCandidates kept;
  for (const NmsCandidate& each : all) {
    bool stays = true;
    for (const NmsCandidate& other : kept)
      stays = stays && NmsOverlap(each.box, other.box, spec.normalized ? 0 : 1) <= threshold;
    if (!stays) continue;
    kept.push_back(each);
    if (spec.nms_eta < 1 && threshold > 0.5) threshold *= spec.nms_eta;
  }
  return kept;
}

// `classes` are the candidates of each class of an image.
inline NmsCandidates NmsOfImage(const MulticlassNmsSpec& spec,
                                const std::vector<NmsCandidates>& classes, bool by_position) {
  NmsCandidates all;
  for (size_t label = 0; label < classes.size(); ++label) {
    if (static_cast<int32_t>(label) == spec.background_label) continue;
    NmsCandidates kept = NmsOfClass(spec, classes[label]);
    if (by_position)
      std::ranges::sort(kept, {}, [](const NmsCandidate& each) { return each.position; });
    all.insert(all.end(), kept.begin(), kept.end());
  }
  if (spec.keep_top_k >= 0 && spec.keep_top_k < std::ssize(all)) {
    SortNmsByScore(all);
    all.erase(all.begin() + spec.keep_top_k, all.end());
    std::stable_sort(all.begin(), all.end(), [&](const NmsCandidate& a, const NmsCandidate& b) {
      return std::pair(a.label, by_position ? a.position : 0) <
             std::pair(b.label, by_position ? b.position : 0);
    });
  }
  return all;
}

// The candidates of each class of each image.
inline std::vector<std::vector<NmsCandidates>> NmsImages(const Arrays& inputs) {
  const Array& scores = inputs.at("Scores")[0];
  const auto boxes = BoxesOf(inputs.at("BBoxes")[0]);
  std::vector<std::vector<NmsCandidates>> images;
  if (scores.shape.rank() == 3) {
    const int64_t classes = scores.shape[1];
    const int64_t count = scores.shape[2];
    for (int64_t n = 0; n < scores.shape[0]; ++n) {
      images.emplace_back(static_cast<size_t>(classes));
      for (int64_t i = 0; i < classes * count; ++i) {
        const int64_t position = n * count + i % count;
        images.back()[static_cast<size_t>(i / count)].push_back(
            {i / count, position, scores.values[static_cast<size_t>(n * classes * count + i)],
             boxes[static_cast<size_t>(position)]});
      }
    }
    return images;
  }
  std::vector<int64_t> counts;
  if (inputs.contains("RoisNum")) {
    for (const double count : inputs.at("RoisNum")[0].values)
      counts.push_back(static_cast<int64_t>(count));
  } else {
    const std::vector<uint64_t>& offsets = inputs.at("BBoxes")[0].lod.back();
    for (size_t i = 1; i < offsets.size(); ++i)
      counts.push_back(static_cast<int64_t>(offsets[i] - offsets[i - 1]));
  }
  const int64_t classes = scores.shape[1];
  int64_t position = 0;
  for (const int64_t count : counts) {
    images.emplace_back(static_cast<size_t>(classes));
    for (int64_t i = 0; i < count * classes; ++i, ++position) {
      const auto at = static_cast<size_t>(position);
      images.back()[static_cast<size_t>(i % classes)].push_back(
          {i % classes, position, scores.values[at], boxes[at]});
    }
  }
  return images;
}

inline Arrays MulticlassNmsReference(const MulticlassNmsSpec& spec, const Arrays& inputs) {
  std::vector<double> out;
  std::vector<double> index;
  std::vector<double> counts;
  std::vector<uint64_t> offsets = {0};
  const bool by_position = inputs.at("Scores")[0].shape.rank() == 2;
  for (const auto& classes : NmsImages(inputs)) {
    const NmsCandidates kept = NmsOfImage(spec, classes, by_position);
    for (const NmsCandidate& each : kept) {
      out.insert(out.end(), {static_cast<double>(each.label), each.score});
      out.insert(out.end(), each.box.begin(), each.box.end());
      index.push_back(static_cast<double>(each.position));
    }
    counts.push_back(static_cast<double>(kept.size()));
    offsets.push_back(index.size());
  }
  const auto rows = static_cast<int64_t>(index.size());
  Array detections = Values({rows, 6}, std::move(out));
  Array positions = Values({rows, 1}, std::move(index), DType::kInt32);
  const auto images = static_cast<int64_t>(counts.size());
  Array numbers = Values({images}, std::move(counts), DType::kInt32);
  if (spec.has_counts())
    return {{"Out", {detections}}, {"Index", {positions}}, {"NmsRoisNum", {numbers}}};
  detections.lod = positions.lod = {offsets};
  if (spec.has_index()) return {{"Out", {detections}}, {"Index", {positions}}};
  if (rows == 0) {
    detections = Values({1, 1}, {-1});
    detections.lod = {{0, 1}};
  }
  return {{"Out", {detections}}};
}

inline OpCase MulticlassNmsCase(const std::string& name, Arrays inputs,
                                const MulticlassNmsSpec& spec) {
  OpCase op_case = {
      .name = name,
      .type = spec.type,
      .inputs = std::move(inputs),
      .attrs = {{"background_label", spec.background_label},
                {"score_threshold", spec.score_threshold},
                {"nms_top_k", spec.nms_top_k},
                {"nms_threshold", spec.nms_threshold},
                {"nms_eta", spec.nms_eta},
                {"keep_top_k", spec.keep_top_k},
                {"normalized", spec.normalized}},
      .reference = [=](const Arrays& inputs) { return MulticlassNmsReference(spec, inputs); },
      .outputs = {{"Out", 1}}};
  if (spec.has_index()) op_case.outputs.emplace_back("Index", 1);
  if (spec.has_counts()) op_case.outputs.emplace_back("NmsRoisNum", 1);
  return op_case;
}

// `images` images with scores of 3 classes of `boxes` boxes, in images of size × size.
inline Arrays NmsInputs(int64_t images, int64_t boxes, uint64_t seed, double size = 1) {
  return {{"BBoxes", {RandomBoxes({images, boxes, 4}, seed, size)}},
          {"Scores", {Distinct({images, 3, boxes}, seed + 1, 0, 1)}}};
}

// The same of boxes that each class has by itself, in images of 3, 0 and the other boxes.
inline Arrays RaggedNmsInputs(int64_t boxes, uint64_t seed) {
  Arrays inputs = {{"BBoxes", {RandomBoxes({boxes, 3, 4}, seed)}},
                   {"Scores", {Distinct({boxes, 3}, seed + 1, 0, 1)}}};
  inputs.at("BBoxes")[0] = Ragged(inputs.at("BBoxes")[0], {3, 0, boxes - 3});
  return inputs;
}

// Equal scores, within a class and between classes, on equal boxes and others.
inline Arrays NmsTies() {
  Arrays inputs = NmsInputs(1, 6, 31);
  inputs.at("BBoxes")[0] = Values({1, 6, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3,  //
                                              2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7});
  inputs.at("Scores")[0] = Values({1, 3, 6}, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5,   //
                                              0.5, 0.5, 0.25, 0.5, 0.5, 0.5,  //
                                              0.75, 0.75, 0.5, 0.5, 0.5, 0.75});
  return inputs;
}

// NaN among scores and coordinates, boxes without area and with exchanged corners.
inline Arrays NmsOddNumbers() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {{"BBoxes", {Values({1, 6, 4}, {nan, 0, 1, 1, 0, 0, 1, nan, 0, 0, 1, 1,  //
                                         2,   2, 2, 2, 2, 2, 2, 2,   1, 1, 0, 0})}},
          {"Scores",
           {Values({1, 3, 6}, {0.9, 0.8, 0.7, 0.6, 0.5, 0.4,  //
                               nan, 0.3, 0.9, nan, 0.5, 0.6,  //
                               0.5, 0.6, 0.7, 0.8, 0.9, 0.95})}}};
}

inline void AddNmsCases(const std::string& type, CaseList& cases) {
  const MulticlassNmsSpec usual = {.type = type};
  const auto add = [&](const std::string& name, Arrays inputs, MulticlassNmsSpec spec) {
    spec.type = type;
    cases.push_back(MulticlassNmsCase(name, std::move(inputs), spec));
  };
  add("images", NmsInputs(2, 20, 1), usual);
  add("all_classes", NmsInputs(2, 20, 3), {.background_label = -1});
  add("other_background", NmsInputs(2, 20, 5), {.background_label = 2, .nms_threshold = 0.6f});
  add("nms_top_k", NmsInputs(2, 20, 7), {.nms_top_k = 4});
  add("keep_top_k", NmsInputs(2, 20, 9), {.background_label = -1, .keep_top_k = 3});
  add("eta", NmsInputs(1, 40, 11), {.nms_threshold = 0.8f, .nms_eta = 0.8f});
  add("pixels", NmsInputs(2, 20, 13, 12), {.normalized = false});
  add("ties", NmsTies(), {.background_label = -1});
  add("ties_of_top_k", NmsTies(), {.background_label = -1, .nms_top_k = 4, .keep_top_k = 5});
  add("odd_numbers", NmsOddNumbers(), {.background_label = -1});
  add("nothing_found", NmsInputs(2, 5, 15), {.score_threshold = 1});
  add("nothing_kept", NmsInputs(2, 5, 17), {.keep_top_k = 0});
  add("nothing_in_one", NmsInputs(2, 1, 19), {.score_threshold = 0.6f});
  add("no_boxes", NmsInputs(2, 0, 21), usual);
  add("ragged", RaggedNmsInputs(12, 25), {.background_label = -1});
  add("ragged_top_k", RaggedNmsInputs(12, 27), {.nms_top_k = 5, .keep_top_k = 3});
  add("benchmark", NmsInputs(8, 8732, 29),
      {.score_threshold = 0.01f, .nms_top_k = 400, .nms_threshold = 0.45f, .keep_top_k = 200});
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
