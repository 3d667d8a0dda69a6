#include "models/vgg/vgg.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "framework/base/error.h"
#include "framework/builder/initializer.h"
#include "framework/builder/nn.h"

namespace skiff::models {
namespace {

constexpr int kStages = 5;
constexpr int64_t kSmallestExtent = 32;  // halved in each stage
constexpr int64_t kLargeExtent = 64;

// By depth: the number of convolutions in each stage. A depth counts these and the three fully
// connected layers of the large head.
const std::map<int32_t, std::array<int, kStages>>& Stages() {
  static const std::map<int32_t, std::array<int, kStages>> stages = {
      {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
  return stages;
}

ParamAttr ForRectifiedUnits() { return {.initializer = initializer::Msra({.uniform = false})}; }

// Without a bias, which batch normalisation would subtract again.
Variable ConvNormRelu(const Variable& x, int64_t filters) {
  const Variable y = layers::Conv2d(x, {.filters = filters,
                                        .kernel = 3,
                                        .padding = 1,
                                        .param_attr = ForRectifiedUnits(),
                                        .bias_attr = false});
  return layers::BatchNorm(y, {.act = "relu"});
}

// The first of these holds most of the network's weights: 25,088 x 4,096 for images of 224 x 224.
Variable HiddenLayer(const Variable& x) {
  const Variable y = layers::Fc(
      x, 4096, {.num_flatten_dims = 1, .param_attr = ForRectifiedUnits(), .act = "relu"});
  return layers::Dropout(y, 0.5f, {.implementation = "downgrade_in_infer"});
}

bool IsLarge(const Variable& image, VggHead head) {
  if (head != VggHead::kBySize) return head == VggHead::kLarge;
  return std::min(image.dims()[2], image.dims()[3]) >= kLargeExtent;
}

}  // namespace

const std::vector<int32_t>& VggDepths() {
  static const std::vector<int32_t> depths = [] {
    std::vector<int32_t> result;
    for (const auto& [depth, stages] : Stages()) result.push_back(depth);
    return result;
  }();
  return depths;
}

Variable Vgg(const Variable& image, const VggOptions& options) {
  const auto stages = Stages().find(options.depth);
  SKIFF_ENFORCE(stages != Stages().end(), kInvalidArgument, "VGG of depth ", options.depth,
                ": expected one of ", Join(VggDepths(), ", "));
  SKIFF_ENFORCE(image.dims().size() == 4 && image.dims()[2] >= kSmallestExtent &&
                    image.dims()[3] >= kSmallestExtent,
                kInvalidArgument, "VGG of images of dims [", Join(image.dims(), ", "),
                "]: expected [batch, channels, height, width] with extents of at least ",
                kSmallestExtent);
  Variable x = image;
  int64_t filters = 64;
  for (const int convolutions : stages->second) {
    for (int i = 0; i < convolutions; ++i) x = ConvNormRelu(x, filters);
    x = layers::Pool2d(x, {.kernel = 2, .type = "max"});
    // 64, 128, 256, 512, 512: the work of a stage stays about the same while the image shrinks.
    filters = std::min<int64_t>(2 * filters, 512);
  }
  if (IsLarge(image, options.head)) x = HiddenLayer(HiddenLayer(x));
  return layers::Fc(x, options.classes, {.num_flatten_dims = 1});
}

}  // namespace skiff::models
