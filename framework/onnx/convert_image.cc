// Ops that exchange channels and pixels, sample images, or add up their columns.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
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
  if (b < 1 || b > d[1] / b || d[1] % (b * b) != 0) {
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

void GridSample(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  Variable grid = node.In(1);
  const size_t rank = x.dims().size();
  if (!IsFloat(x.dtype())) node.Unsupported("samples ", x.dtype());
  if (rank != 4 && rank != 5) node.Unsupported("samples tensors of rank ", rank);
  if (grid.dtype() != x.dtype()) grid = layers::Cast(grid, x.dtype());
  std::string mode = node.String("mode", node.opset() >= 20 ? "linear" : "bilinear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  if (mode == "bicubic" && rank == 5) node.Unsupported("mode = \"cubic\" of volumes");
  node.Out(0, layers::GridSample(x, grid,
                                 {.mode = mode,
                                  .padding_mode = node.String("padding_mode", "zeros"),
                                  .align_corners = node.Int("align_corners", 0) != 0}));
}

void AffineGrid(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const auto size = node.KnownDims(1);
  if (!size) node.Unsupported("its size depends on data");
  if (size->size() != 4 && size->size() != 5) {
    node.Invalid("its size has ", size->size(), " dims, expected 4 or 5");
  }
  if (std::ranges::count(size->begin() + 2, size->end(), -1) > 0) {
    node.Unsupported("the extents of its images are known only in a run");
  }
  node.Out(0, layers::AffineGrid(node.In(0), *size, node.Int("align_corners", 0) != 0));
}

// Of images, and of sequences as images of height 1.
void Col2Im(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  Ints extents = node.Ints(1);
  Ints block = node.Ints(2);
  const size_t axes = extents.size();
  Ints strides = node.IntList("strides", Ints(axes, 1));
  Ints dilations = node.IntList("dilations", Ints(axes, 1));
  Ints pads = node.IntList("pads", Ints(2 * axes, 0));
  if (axes < 1 || axes > 2) node.Unsupported("makes images of ", axes, " axes, expected 1 or 2");
  if (block.size() != axes || strides.size() != axes || dilations.size() != axes ||
      pads.size() != 2 * axes) {
    node.Invalid("block_shape, strides, dilations or pads don't have numbers for ", axes, " axes");
  }
  if (axes == 1) {
    for (Ints* numbers : {&extents, &block, &strides, &dilations})
      numbers->insert(numbers->begin(), 1);
    pads = {0, pads[0], 0, pads[1]};
  }
  Op op("fold");
  op.SetInput("X", {node.In(0).name()}).SetAttr("output_sizes", extents);
  op.SetAttr("kernel_sizes", block).SetAttr("strides", strides).SetAttr("dilations", dilations);
  op.SetAttr("paddings", pads);
  const Variable images = node.Emit(std::move(op), "Y");
  node.Out(0, axes == 1 ? layers::Squeeze(images, {2}) : images);
}

}  // namespace

std::vector<OnnxConverterEntry> ImageConverters() {
  return {
      {"AffineGrid", AffineGrid},     {"Col2Im", Col2Im},
      {"DepthToSpace", DepthToSpace}, {"GridSample", GridSample},
      {"SpaceToDepth", SpaceToDepth},
  };
}

}  // namespace skiff
