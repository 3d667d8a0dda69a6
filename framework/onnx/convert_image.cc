// Ops that exchange channels and pixels.
#include <algorithm>
#include <vector>

#include "framework/builder/tensor.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// The extents of images, of which the batch alone may be unknown.
Ints ImageDims(const OnnxNode& node, const Variable& x) {
  Ints dims = x.dims();
  if (dims.size() != 4) node.Invalid("its input is of rank ", dims.size(), ", expected 4");
  if (std::ranges::count_if(dims.begin() + 1, dims.end(), [](int64_t d) { return d <= 0; }) > 0) {
    node.Unsupported("the extents of its images are known only in a run");
  }
  return dims;
}

void DepthToSpace(const OnnxNode& node) {
  const Variable x = node.In(0);
  const Ints d = ImageDims(node, x);
  const int64_t b = node.Int("blocksize", 0);
  if (b < 1 || b > d[1] || d[1] % (b * b) != 0) {
    node.Invalid("blocksize = ", b, ", expected one whose square divides the ", d[1], " channels");
  }
  const bool depth_first = node.String("mode", "DCR") == "DCR";
  const int64_t c = d[1] / (b * b);
  const Variable cut = layers::Reshape(
      x, depth_first ? Ints{d[0], b, b, c, d[2], d[3]} : Ints{d[0], c, b, b, d[2], d[3]});
  const Variable moved =
      layers::Transpose(cut, depth_first ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  node.Out(0, layers::Reshape(moved, {d[0], c, d[2] * b, d[3] * b}));
}

void SpaceToDepth(const OnnxNode& node) {
  const Variable x = node.In(0);
  const Ints d = ImageDims(node, x);
  const int64_t b = node.Int("blocksize", 0);
  if (b < 1 || d[2] % b != 0 || d[3] % b != 0) {
    node.Invalid("blocksize = ", b, ", expected a divisor of the extents ", d[2], " and ", d[3]);
  }
  const Variable cut = layers::Reshape(x, {d[0], d[1], d[2] / b, b, d[3] / b, b});
  const Variable moved = layers::Transpose(cut, {0, 3, 5, 1, 2, 4});
  node.Out(0, layers::Reshape(moved, {d[0], d[1] * b * b, d[2] / b, d[3] / b}));
}

}  // namespace

std::vector<OnnxConverterEntry> ImageConverters() {
  return {
      {"DepthToSpace", DepthToSpace},
      {"SpaceToDepth", SpaceToDepth},
  };
}

}  // namespace skiff
