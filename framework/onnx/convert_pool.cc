// Pooling.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/builder/activation.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/window.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// What a pool makes of the elements in a window.
enum class Pooling { kMax, kSum, kAverage, kAverageOfInput };

int64_t ReachOf(const OnnxWindow& w, size_t i) { return (w.kernel[i] - 1) * w.dilations[i] + 1; }

int64_t WindowsAlong(const OnnxWindow& w, size_t i, int64_t extent, bool ceil_mode) {
  const int64_t room = extent + w.before[i] + w.after[i] - ReachOf(w, i);
  if (room < 0) return 0;
  int64_t windows = room / w.strides[i] + 1;
  // Another one begins in the input or the border before it, and may reach beyond.
  const bool has_rest = ceil_mode && room % w.strides[i] != 0;
  if (has_rest && windows * w.strides[i] < extent + w.before[i]) ++windows;
  return windows;
}

// Pools axis `axis` of x by picking the elements of every window: for what the ops of Skiff don't
// have, such as dilations.
Variable PooledAlong(const OnnxNode& node, const Variable& x, const OnnxWindow& w, size_t i,
                     bool ceil_mode, Pooling pooling) {
  const auto dim = static_cast<int64_t>(i) + 2;
  const int64_t extent = x.dims()[static_cast<size_t>(dim)];
  if (extent < 1) node.Unsupported("pools axis ", dim, ", whose extent only a run knows");
  const int64_t windows = WindowsAlong(w, i, extent, ceil_mode);
  if (windows < 1) node.Invalid("its windows are larger than its input");
  if (windows > kMostConstant / w.kernel[i]) {
    node.Unsupported("has ", windows, " windows of ", w.kernel[i], " elements");
  }
  Ints places;
  std::vector<float> shares;
  for (int64_t window = 0; window < windows; ++window) {
    int64_t counted = 0;
    for (int64_t tap = 0; tap < w.kernel[i]; ++tap) {
      const int64_t place = window * w.strides[i] - w.before[i] + tap * w.dilations[i];
      const bool is_inside = place >= 0 && place < extent;
      const bool is_border = place >= -w.before[i] && place < extent + w.after[i];
      counted += pooling == Pooling::kAverage ? is_border : is_inside;
      // The element behind the last one is what pads.
      places.push_back(is_inside ? place : extent);
    }
    shares.push_back(1.0f / static_cast<float>(std::max<int64_t>(counted, 1)));
  }
  Ints border(2 * x.dims().size(), 0);
  border[2 * static_cast<size_t>(dim) + 1] = 1;
  const bool is_max = pooling == Pooling::kMax;
  const Variable padded =
      layers::Pad(x, border, is_max ? -std::numeric_limits<float>::infinity() : 0.0f);
  const auto count = static_cast<int64_t>(places.size());
  const Variable picked = layers::Gather(padded, layers::AssignValue({count}, places), dim);
  Ints dims(x.dims().size() + 1, 0);
  for (size_t k = 0; k < dims.size(); ++k) {
    const auto at = static_cast<int64_t>(k);
    // 0 keeps an extent, but only in its place.
    dims[k] = at < dim ? 0 : at == dim ? windows : at == dim + 1 ? w.kernel[i] : x.dims()[k - 1];
  }
  const Variable taps = layers::Reshape(picked, dims);
  const layers::ReduceOptions over_taps = {.dims = {dim + 1}};
  if (is_max) return layers::ReduceMax(taps, over_taps);
  const Variable sums = layers::ReduceSum(taps, over_taps);
  if (pooling == Pooling::kSum) return sums;
  Ints along(x.dims().size() - 2 - i, 1);
  along[0] = windows;
  return sums * layers::Cast(layers::AssignValue(along, shares), x.dtype());
}

Variable PooledByPicking(const OnnxNode& node, Variable x, const OnnxWindow& w, bool ceil_mode,
                         Pooling pooling) {
  for (size_t i = 0; i < w.axes; ++i) x = PooledAlong(node, x, w, i, ceil_mode, pooling);
  return x;
}

// Whether the ops of Skiff compute the same: without dilations, and where rounding up makes no
// window that reaches beyond the border, or there is no border and each window begins inside.
bool IsPlain(const Variable& x, const OnnxWindow& w, bool ceil_mode) {
  for (size_t i = 0; i < w.axes; ++i) {
    if (w.dilations[i] != 1 || w.before[i] >= w.kernel[i] || w.after[i] >= w.kernel[i])
      return false;
    const bool begins_inside = w.before[i] == 0 && w.after[i] == 0 && w.strides[i] <= w.kernel[i];
    if (!ceil_mode || begins_inside) continue;
    const int64_t extent = x.dims()[i + 2];
    const int64_t room = extent + w.before[i] + w.after[i] - w.kernel[i];
    if (extent < 0 || room % w.strides[i] != 0) return false;
  }
  return true;
}

// For each channel of images [N, C, …] of so many pixels, the number of pixels in all channels
// before it: [N, C, 1, 1] of int64.
Variable PixelsBefore(const Variable& images, int64_t pixels) {
  const int64_t channels = images.dims()[1];
  const Variable of_channels = layers::FillConstantBatchSizeLike(
      images, {-1, channels, 1, 1}, DType::kInt64, static_cast<double>(pixels));
  const Variable before = layers::Cumsum(of_channels, {.flatten = true, .exclusive = true});
  return layers::Reshape(before, {-1, channels, 1, 1});
}

// Returns the number of pixels in a channel of images, which must be known, as must be that of
// channels.
int64_t KnownPixels(const OnnxNode& node, const Variable& images) {
  const Ints& dims = images.dims();
  if (std::ranges::count_if(dims.begin() + 1, dims.end(), [](int64_t d) { return d < 1; }) > 0) {
    node.Unsupported("numbers pixels of images whose extents only a run knows");
  }
  return dims[2] * dims[3];
}

// Adds to the borders behind what makes the last window whole.
void RoundUpWindows(const OnnxNode& node, const Variable& x, OnnxWindow* w) {
  for (size_t i = 0; i < w->axes; ++i) {
    const int64_t extent = x.dims()[i + 2];
    const int64_t windows = WindowsAlong(*w, i, extent, /*ceil_mode=*/true);
    if (windows < 1) node.Invalid("its windows are larger than its input");
    const int64_t reach = (windows - 1) * w->strides[i] + ReachOf(*w, i) - extent - w->before[i];
    w->after[i] = std::max(w->after[i], reach);
  }
}

// The maxima of windows, and their places in the whole tensor.
void MaxPoolWithPlaces(const OnnxNode& node, OnnxWindow w, bool ceil_mode) {
  const Variable x = AsImages(node.In(0), w);
  if (x.dims().size() != 4) node.Unsupported("asks for the places of maxima in volumes");
  if (std::ranges::count(w.dilations, 1) != static_cast<int64_t>(w.axes)) {
    node.Unsupported("asks for the places of maxima in windows with dilations");
  }
  const int64_t pixels = KnownPixels(node, x);
  if (ceil_mode) RoundUpWindows(node, node.In(0), &w);
  const OnnxWindow given = w;
  MakeTwoAxes(&w);
  Op op("max_pool2d_with_index");
  op.SetInput("X", {x.name()}).SetAttr("ksize", w.kernel).SetAttr("strides", w.strides);
  op.SetAttr("paddings", PaddingsOf(w));
  const LayerCall layer(op.type, "", std::source_location::current());
  const Variable maxima = layer.NewOutput();
  const Variable mask = layer.NewOutput();
  op.SetOutput("Out", {maxima.name()}).SetOutput("Mask", {mask.name()});
  layer.Append(std::move(op));
  Variable place = layers::Cast(mask, DType::kInt64);
  if (node.Int("storage_order", 0) != 0) {
    // Columns come one after the other.
    const Variable height = layers::AssignValue({1}, Ints{x.dims()[2]});
    const Variable width = layers::AssignValue({1}, Ints{x.dims()[3]});
    place =
        layers::ElementwiseMod(place, width) * height + layers::ElementwiseFloordiv(place, width);
  }
  node.Out(0, FromImages(maxima, given));
  node.Out(1, FromImages(place + PixelsBefore(x, pixels), given));
}

void MaxUnpool(const OnnxNode& node) {
  node.CheckInputs(2, 3);
  OnnxWindow w = WindowOf(node, node.In(0), node.IntList("kernel_shape"));
  const Variable x = AsImages(node.In(0), w);
  if (x.dims().size() != 4) node.Unsupported("puts back maxima of volumes");
  KnownPixels(node, x);
  const OnnxWindow given = w;
  MakeTwoAxes(&w);
  // The extents that the indices are for; others get zeros behind.
  Ints extents;
  for (size_t i = 0; i < 2; ++i) {
    extents.push_back(MultiplyCounts(x.dims()[i + 2] - 1, w.strides[i]) + w.kernel[i] -
                      w.before[i] - w.after[i]);
    if (extents[i] < 1) node.Invalid("its output has the extent ", extents[i]);
  }
  const Variable before = PixelsBefore(x, MultiplyCounts(extents[0], extents[1]));
  const Variable y = layers::MaxUnpool2d(x, AsImages(node.In(1), given) - before,
                                         {.kernel = {w.kernel[0], w.kernel[1]},
                                          .output_size = layers::Extent2d(extents[0], extents[1])});
  const Ints wanted = node.Ints(2);
  if (wanted.empty()) return node.Out(0, FromImages(y, given));
  if (wanted.size() != given.axes + 2) {
    node.Invalid("output_shape has ", wanted.size(), " dims, expected ", given.axes + 2);
  }
  Ints border(8, 0);
  for (size_t i = 0; i < 2; ++i) {
    // Of sequences, the height stays.
    const int64_t extent = given.axes == 1 && i == 0 ? 1 : wanted[given.axes + i];
    if (extent < extents[i]) {
      node.Unsupported("output_shape cuts an extent of ", extents[i], " to ", extent);
    }
    border[2 * (i + 2) + 1] = extent - extents[i];
  }
  node.Out(0, FromImages(layers::Pad(y, border), given));
}

void Pool(const OnnxNode& node, Pooling pooling) {
  node.CheckInputs(1, 1);
  const Variable x = node.In(0);
  if (!IsFloat(x.dtype())) node.Unsupported("pools ", x.dtype());
  OnnxWindow w = WindowOf(node, x, node.IntList("kernel_shape"));
  ApplyAutoPad(node, x, &w);
  const bool ceil_mode = node.Int("ceil_mode", 0) != 0;
  if (node.Wants(1)) return MaxPoolWithPlaces(node, w, ceil_mode);
  if (!IsPlain(x, w, ceil_mode)) {
    return node.Out(0, PooledByPicking(node, x, w, ceil_mode, pooling));
  }
  const bool has_border = std::ranges::any_of(w.before, std::identity{}) ||
                          std::ranges::any_of(w.after, std::identity{});
  MakeTwoAxes(&w);
  // What a window of an average lacks behind the input never counts; only a border may.
  node.Out(0,
           PooledBy(node, x, w, pooling == Pooling::kMax ? "max" : "avg", ceil_mode && !has_border,
                    pooling == Pooling::kAverageOfInput || !has_border));
}
void MaxPool(const OnnxNode& node) { Pool(node, Pooling::kMax); }
void AveragePool(const OnnxNode& node) {
  Pool(node, node.Int("count_include_pad", 0) != 0 ? Pooling::kAverage : Pooling::kAverageOfInput);
}

void LpPool(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Variable x = node.In(0);
  OnnxWindow w = WindowOf(node, x, node.IntList("kernel_shape"));
  ApplyAutoPad(node, x, &w);
  const auto p = static_cast<float>(node.Int("p", 2));
  if (p < 1) node.Invalid("p = ", p, ", expected at least 1");
  const Variable powers = layers::Pow(layers::Abs(x), p);
  const Variable sums =
      PooledByPicking(node, powers, w, node.Int("ceil_mode", 0) != 0, Pooling::kSum);
  node.Out(0, layers::Pow(sums, 1.0f / p));
}

}  // namespace

std::vector<OnnxConverterEntry> PoolConverters() {
  return {
      {"AveragePool", AveragePool},
      {"LpPool", LpPool},
      {"MaxPool", MaxPool},
      {"MaxUnpool", MaxUnpool},
  };
}

}  // namespace skiff
