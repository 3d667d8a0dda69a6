#include "models/lenet/lenet.h"

#include "framework/base/error.h"
#include "framework/builder/initializer.h"
#include "framework/builder/nn.h"

namespace skiff::models {
namespace {

ParamAttr ForRectifiedUnits() { return {.initializer = initializer::Msra({.uniform = false})}; }

// `padding` keeps the first convolution from shrinking images of 28 x 28, which the paper pads to
// 32 x 32.
Variable ConvPool(const Variable& x, int64_t filters, int32_t padding) {
  const Variable y = layers::Conv2d(x, {.filters = filters,
                                        .kernel = 5,
                                        .padding = padding,
                                        .param_attr = ForRectifiedUnits(),
                                        .act = "relu"});
  return layers::Pool2d(y, {.kernel = 2, .type = "max"});
}

}  // namespace

Variable LeNet(const Variable& image, int64_t classes) {
  // Halved to 6 by the first pooling, cut to 2 by the second convolution, halved to 1.
  constexpr int64_t kSmallestExtent = 12;
  SKIFF_ENFORCE(image.dims().size() == 4 && image.dims()[2] >= kSmallestExtent &&
                    image.dims()[3] >= kSmallestExtent,
                kInvalidArgument, "LeNet of images of dims [", Join(image.dims(), ", "),
                "]: expected [batch, channels, height, width] with extents of at least ",
                kSmallestExtent);
  Variable x = ConvPool(image, 6, 2);
  x = ConvPool(x, 16, 0);
  x = layers::Fc(x, 120, {.num_flatten_dims = 1, .param_attr = ForRectifiedUnits(), .act = "relu"});
  x = layers::Fc(x, 84, {.param_attr = ForRectifiedUnits(), .act = "relu"});
  return layers::Fc(x, classes);
}

}  // namespace skiff::models
