#include "operators/detection/kernels/suppression.h"

#include <algorithm>

namespace skiff {
namespace {

// Fluid compares scores of float64 as float32, too.
template <typename T>
float RankOf(const Candidates<T>& image, const Detection& detection) {
  return static_cast<float>(image.score(detection.label, detection.candidate));
}

template <typename T>
void SortByScore(const Candidates<T>& image, std::vector<Detection>& detections) {
  std::ranges::stable_sort(detections, [&](const Detection& a, const Detection& b) {
    return RankOf(image, a) > RankOf(image, b);
  });
}

void KeepFirst(int64_t count, std::vector<Detection>& detections) {
  if (count >= 0 && count < std::ssize(detections)) detections.resize(static_cast<size_t>(count));
}

template <typename T>
T AreaOf(const Box<T>& box, T offset) {
  if (box.xmax < box.xmin || box.ymax < box.ymin) return T(0);
  return (box.width() + offset) * (box.height() + offset);
}

// Returns the area that boxes share / the area of both; NaN if both are 0.
template <typename T>
T OverlapOf(const Box<T>& a, const Box<T>& b, T offset) {
  if (b.xmin > a.xmax || b.xmax < a.xmin || b.ymin > a.ymax || b.ymax < a.ymin) return T(0);
  const T width = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin) + offset;
  const T height = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin) + offset;
  const T shared = width * height;
  return shared / (AreaOf(a, offset) + AreaOf(b, offset) - shared);
}

// Returns the candidates of a class that are looked at, the best first.
template <typename T>
std::vector<Detection> BestOf(const Candidates<T>& image, int64_t label,
                              const SuppressionSettings& settings) {
  std::vector<Detection> best;
  for (int64_t i = 0; i < image.count; ++i) {
    if (image.score(label, i) > static_cast<WideType<T>>(settings.score_threshold))
      best.push_back({label, i});
  }
  SortByScore(image, best);
  KeepFirst(settings.nms_top_k, best);
  return best;
}

template <typename T>
std::vector<Detection> SuppressedClass(const Candidates<T>& image, int64_t label,
                                       const SuppressionSettings& settings) {
  using Wide = WideType<T>;
  const Wide offset = PixelOffset<Wide>(settings.normalized);
  Wide threshold = static_cast<Wide>(settings.nms_threshold);
  std::vector<Detection> kept;
  for (const Detection& next : BestOf(image, label, settings)) {
    const Box<Wide> box = image.box(label, next.candidate);
    // An overlap of NaN is none that may stay.
    const bool stays = std::ranges::all_of(kept, [&](const Detection& other) {
      return OverlapOf(box, image.box(label, other.candidate), offset) <= threshold;
    });
    if (!stays) continue;
    kept.push_back(next);
    if (settings.nms_eta < 1 && threshold > Wide(0.5))
      threshold *= static_cast<Wide>(settings.nms_eta);
  }
  return kept;
}

void SortByCandidate(std::vector<Detection>& detections) {
  std::ranges::sort(detections, {}, &Detection::candidate);
}

}  // namespace

SuppressionSettings SuppressionSettingsOf(const OpContext& context) {
  return {.background_label = context.IntAttr("background_label"),
          .score_threshold = context.Attr<float>("score_threshold"),
          .nms_top_k = context.IntAttr("nms_top_k"),
          .keep_top_k = context.IntAttr("keep_top_k"),
          .nms_threshold = context.Attr<float>("nms_threshold"),
          .nms_eta = context.Attr<float>("nms_eta"),
          .normalized = context.Attr<bool>("normalized")};
}

template <typename T>
std::vector<Detection> DetectionsOf(const Candidates<T>& image,
                                    const SuppressionSettings& settings) {
  std::vector<Detection> all;
  // There may be any number of classes then.
  if (image.count == 0) return all;
  for (int64_t label = 0; label < image.classes; ++label) {
    if (label == settings.background_label) continue;
    std::vector<Detection> kept = SuppressedClass(image, label, settings);
    if (image.boxes_of_class) SortByCandidate(kept);
    all.insert(all.end(), kept.begin(), kept.end());
  }
  if (settings.keep_top_k < 0 || std::ssize(all) <= settings.keep_top_k) return all;
  SortByScore(image, all);
  KeepFirst(settings.keep_top_k, all);
  if (image.boxes_of_class) SortByCandidate(all);
  std::ranges::stable_sort(all, {}, &Detection::label);
  return all;
}

template std::vector<Detection> DetectionsOf(const Candidates<Float16>&,
                                             const SuppressionSettings&);
template std::vector<Detection> DetectionsOf(const Candidates<BFloat16>&,
                                             const SuppressionSettings&);
template std::vector<Detection> DetectionsOf(const Candidates<float>&, const SuppressionSettings&);
template std::vector<Detection> DetectionsOf(const Candidates<double>&, const SuppressionSettings&);

}  // namespace skiff
