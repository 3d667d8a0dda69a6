#include "models/common/generated_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"

namespace skiff::models {
namespace {

struct Point {
  float x;
  float y;
};
struct Segment {
  Point from;
  Point to;
};

// The display in a box of [-0.5, 0.5] x [-1, 1], y downwards: top, right upper, right lower,
// bottom, left lower, left upper, middle.
constexpr std::array<Segment, 7> kSegments = {{{{-0.5f, -1}, {0.5f, -1}},
                                               {{0.5f, -1}, {0.5f, 0}},
                                               {{0.5f, 0}, {0.5f, 1}},
                                               {{-0.5f, 1}, {0.5f, 1}},
                                               {{-0.5f, 0}, {-0.5f, 1}},
                                               {{-0.5f, -1}, {-0.5f, 0}},
                                               {{-0.5f, 0}, {0.5f, 0}}}};
// By digit; bit i: segment i is lit.
constexpr std::array<uint8_t, 10> kLitSegments = {0x3F, 0x06, 0x5B, 0x4F, 0x66,
                                                  0x6D, 0x7D, 0x07, 0x7F, 0x6F};

// The random numbers of one image. Each image has a generator of its own, so images can be drawn in
// any order and by any number of threads.
class ImageRandom {
 public:
  ImageRandom(uint64_t seed, training::DataStream stream, int64_t image)
      : philox_(DataRandom(seed, stream, image)) {}

  float Uniform(float low, float high) {
    if (used_ == 4) {
      block_ = philox_.At(position_++);
      used_ = 0;
    }
    return low + (high - low) * UnitFloat(block_[used_++]);
  }

 private:
  Philox philox_;
  Philox::Block block_{};
  uint64_t position_ = 0;
  int used_ = 4;
};

// Returns the distance to the nearest point of the segment, at the share t of its length.
float DistanceTo(const Segment& segment, Point p) {
  const Point along{segment.to.x - segment.from.x, segment.to.y - segment.from.y};
  const Point offset{p.x - segment.from.x, p.y - segment.from.y};
  const float length_squared = along.x * along.x + along.y * along.y;
  const float t =
      std::clamp((offset.x * along.x + offset.y * along.y) / length_squared, 0.0f, 1.0f);
  const float dx = offset.x - t * along.x;
  const float dy = offset.y - t * along.y;
  return std::sqrt(dx * dx + dy * dy);
}

struct Drawing {
  std::array<Segment, 7> segments;
  int count = 0;
  float half_stroke = 0;  // pixels
};

Drawing PlaceDigit(int64_t digit, const GeneratedImagesOptions& options, ImageRandom* random) {
  const auto extent = static_cast<float>(std::min(options.height, options.width));
  const float half_height = extent * random->Uniform(0.22f, 0.36f);
  const float half_width_ratio = random->Uniform(0.8f, 1.3f);
  const float slant = random->Uniform(-0.25f, 0.25f);
  const float angle = random->Uniform(-0.2f, 0.2f);
  const Point centre{
      0.5f * static_cast<float>(options.width) + extent * random->Uniform(-0.1f, 0.1f),
      0.5f * static_cast<float>(options.height) + extent * random->Uniform(-0.1f, 0.1f)};
  const float cosine = std::cos(angle);
  const float sine = std::sin(angle);
  // Scales, then slants, then rotates and moves a point of the display.
  const auto place = [&](Point p) {
    const float x = half_height * (p.x * half_width_ratio - slant * p.y);
    const float y = half_height * p.y;
    return Point{centre.x + cosine * x - sine * y, centre.y + sine * x + cosine * y};
  };
  Drawing drawing;
  drawing.half_stroke = extent * random->Uniform(0.025f, 0.05f);
  for (size_t i = 0; i < kSegments.size(); ++i) {
    if ((kLitSegments[digit] >> i & 1) == 0) continue;
    drawing.segments[drawing.count++] = {place(kSegments[i].from), place(kSegments[i].to)};
  }
  return drawing;
}

// Returns about how much of the pixel around p the strokes cover: a linear ramp, one pixel wide,
// around their edges.
float Ink(const Drawing& drawing, Point p) {
  float nearest = 1e9f;
  for (int i = 0; i < drawing.count; ++i) {
    nearest = std::min(nearest, DistanceTo(drawing.segments[i], p));
  }
  return std::clamp(drawing.half_stroke + 0.5f - nearest, 0.0f, 1.0f);
}

// All channels show the same digit, on paper and in ink of their own brightness. A gradient of
// brightness and noise keep a network from telling digits by the sum of pixels.
void DrawImage(int64_t image, const GeneratedImagesOptions& options, std::span<uint8_t> pixels) {
  ImageRandom random(options.seed, options.stream, image);
  const Drawing drawing = PlaceDigit(image % 10, options, &random);
  const int64_t plane = int64_t{options.height} * options.width;
  const float slope_x = random.Uniform(-0.15f, 0.15f) / static_cast<float>(options.width);
  const float slope_y = random.Uniform(-0.15f, 0.15f) / static_cast<float>(options.height);
  for (int32_t c = 0; c < options.channels; ++c) {
    const float paper = random.Uniform(0.1f, 0.4f);
    const float contrast = random.Uniform(0.25f, 0.6f);
    for (int64_t i = 0; i < plane; ++i) {
      const Point p{static_cast<float>(i % options.width) + 0.5f,
                    static_cast<float>(i / options.width) + 0.5f};
      // A sum of four uniform numbers is near enough to normal. Its variance is 4 / 12, so it is
      // multiplied by sqrt(3).
      const float noise = random.Uniform(-0.5f, 0.5f) + random.Uniform(-0.5f, 0.5f) +
                          random.Uniform(-0.5f, 0.5f) + random.Uniform(-0.5f, 0.5f);
      const float value = paper + contrast * Ink(drawing, p) + slope_x * p.x + slope_y * p.y +
                          1.7320508f * options.noise * noise;
      pixels[c * plane + i] = static_cast<uint8_t>(std::clamp(value, 0.0f, 1.0f) * 255.0f + 0.5f);
    }
  }
}

}  // namespace

ImageDataset GenerateImages(const GeneratedImagesOptions& options) {
  SKIFF_ENFORCE(options.images >= 1, kInvalidArgument, options.images,
                " generated images asked for: expected at least one");
  SKIFF_ENFORCE(options.channels >= 1 && options.height >= 1 && options.width >= 1,
                kInvalidArgument, "generated images of shape [", options.channels, ", ",
                options.height, ", ", options.width, "]: expected positive extents");
  SKIFF_ENFORCE(options.noise >= 0, kInvalidArgument, "noise = ", options.noise,
                ": expected no negative number");
  ImageDataset dataset;
  dataset.name = "generated";
  dataset.channels = options.channels;
  dataset.height = options.height;
  dataset.width = options.width;
  dataset.classes = 10;
  const int64_t elements = dataset.image_elements();
  dataset.pixels.resize(MultiplyCounts(options.images, elements));
  dataset.labels.resize(options.images);
  ParallelFor(options.images, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      dataset.labels[i] = i % 10;
      DrawImage(i, options, {dataset.pixels.data() + i * elements, static_cast<size_t>(elements)});
    }
  });
  return dataset;
}

}  // namespace skiff::models
