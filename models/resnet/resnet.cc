#include "models/resnet/resnet.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "framework/base/error.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/initializer.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"

namespace skiff::models {
namespace {

struct Architecture {
  bool bottleneck;
  std::vector<int64_t> widths;  // of the stages
  std::vector<int32_t> blocks;
  bool always_small_stem;  // made for small images, whatever the size of the actual ones
};

// Depth 6n + 2: n blocks of two convolutions in each of three stages.
Architecture SmallImages(int32_t n) { return {false, {16, 32, 64}, {n, n, n}, true}; }

Architecture LargeImages(bool bottleneck, std::vector<int32_t> blocks) {
  return {bottleneck, {64, 128, 256, 512}, std::move(blocks), false};
}

const std::map<int32_t, Architecture>& Architectures() {
  static const auto& architectures = *new std::map<int32_t, Architecture>{
      {18, LargeImages(false, {2, 2, 2, 2})},
      {20, SmallImages(3)},
      {32, SmallImages(5)},
      {34, LargeImages(false, {3, 4, 6, 3})},
      {44, SmallImages(7)},
      {50, LargeImages(true, {3, 4, 6, 3})},
      {56, SmallImages(9)},
      {101, LargeImages(true, {3, 4, 23, 3})},
      {110, SmallImages(18)},
  };
  return architectures;
}

// A convolution without a bias, which batch normalisation would subtract again.
Variable ConvBatchNorm(const Variable& x, int64_t filters, int32_t kernel, int32_t stride,
                       const std::string& act) {
  const Variable y =
      layers::Conv2d(x, {.filters = filters,
                         .kernel = kernel,
                         .stride = stride,
                         .padding = kernel / 2,
                         .param_attr = {.initializer = initializer::Msra({.uniform = false})},
                         .bias_attr = false});
  return layers::BatchNorm(y, {.act = act, .momentum = 0.9f, .epsilon = 1e-5f});
}

// The identity where shapes agree, else a projection (option B of the paper). As in the paper, the
// last convolution of a block and its shortcut have no activation of their own: the relu comes
// after the addition.
Variable Shortcut(const Variable& x, int64_t channels, int32_t stride) {
  if (stride == 1 && x.dims()[1] == channels) return x;
  return ConvBatchNorm(x, channels, 1, stride, "");
}

Variable BasicBlock(const Variable& x, int64_t width, int32_t stride) {
  Variable y = ConvBatchNorm(x, width, 3, stride, "relu");
  y = ConvBatchNorm(y, width, 3, 1, "");
  return layers::ElementwiseAdd(y, Shortcut(x, width, stride), {.act = "relu"});
}

// The 3x3 convolution has the stride, not the first 1x1 one as in the paper ("ResNet v1.5"): a 1x1
// convolution with stride 2 would ignore three quarters of its input.
Variable Bottleneck(const Variable& x, int64_t width, int32_t stride) {
  const int64_t channels = 4 * width;
  Variable y = ConvBatchNorm(x, width, 1, 1, "relu");
  y = ConvBatchNorm(y, width, 3, stride, "relu");
  y = ConvBatchNorm(y, channels, 1, 1, "");
  return layers::ElementwiseAdd(y, Shortcut(x, channels, stride), {.act = "relu"});
}

Variable Stem(const Variable& image, int64_t width, bool large) {
  const NameScope scope("stem");
  if (!large) return ConvBatchNorm(image, width, 3, 1, "relu");
  return layers::Pool2d(ConvBatchNorm(image, width, 7, 2, "relu"),
                        {.kernel = 3, .type = "max", .stride = 2, .padding = 1});
}

// A large stem divides the extents by 4, which would leave nothing of small images for the stages.
bool HasLargeStem(const Variable& image, const Architecture& architecture, ResNetStem stem) {
  if (architecture.always_small_stem) return false;
  if (stem != ResNetStem::kBySize) return stem == ResNetStem::kLarge;
  constexpr int64_t kLargeImage = 64;
  return std::min(image.dims()[2], image.dims()[3]) >= kLargeImage;
}

Variable GlobalMean(const Variable& x) {
  return layers::Pool2d(x, {.type = "avg", .global = true});
}

// The stem and the stages.
Variable Stages(const Variable& image, const ResNetOptions& options) {
  const auto found = Architectures().find(options.depth);
  SKIFF_ENFORCE(found != Architectures().end(), kInvalidArgument, "ResNet of depth ", options.depth,
                ": expected one of ", Join(ResNetDepths(), ", "));
  SKIFF_ENFORCE(image.dims().size() == 4, kInvalidArgument, "ResNet of images of rank ",
                image.dims().size(), ": expected [batch, channels, height, width]");
  const Architecture& architecture = found->second;
  Variable x = Stem(image, architecture.widths[0], HasLargeStem(image, architecture, options.stem));
  for (size_t stage = 0; stage < architecture.widths.size(); ++stage) {
    const NameScope stage_scope(StrCat("stage_", stage + 1));
    for (int32_t block = 0; block < architecture.blocks[stage]; ++block) {
      const NameScope block_scope(StrCat("block_", block + 1));
      // The first block of each later stage halves the image. The stem has done so before stage 1.
      const int32_t stride = block == 0 && stage > 0 ? 2 : 1;
      x = architecture.bottleneck ? Bottleneck(x, architecture.widths[stage], stride)
                                  : BasicBlock(x, architecture.widths[stage], stride);
    }
  }
  return x;
}

}  // namespace

ResNetStem ResNetStemFromName(std::string_view name) {
  if (name == "by_size") return ResNetStem::kBySize;
  if (name == "small") return ResNetStem::kSmall;
  SKIFF_ENFORCE(name == "large", kInvalidArgument, "stem \"", name,
                "\": expected by_size, small or large");
  return ResNetStem::kLarge;
}

const std::vector<int32_t>& ResNetDepths() {
  static const auto& depths = *[] {
    auto* made = new std::vector<int32_t>;
    for (const auto& [depth, architecture] : Architectures()) made->push_back(depth);
    return made;
  }();
  return depths;
}

Variable ResNet(const Variable& image, const ResNetOptions& options) {
  const Variable x = Stages(image, options);
  const NameScope scope("head");
  return layers::Fc(GlobalMean(x), options.classes, {.num_flatten_dims = 1});
}

Variable ResNetVectors(const Variable& image, const ResNetOptions& options) {
  const Variable x = Stages(image, options);
  const NameScope scope("head");
  return GlobalMean(x);
}

}  // namespace skiff::models
