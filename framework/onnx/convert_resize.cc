// Resize and Upsample: images by Skiff's own ops where these sample alike, else each axis by a
// matrix of weights, or by picking, so that every mode of ONNX has a gradient.
#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// A matrix of weights may not be larger.
constexpr int64_t kMostWeights = int64_t{1} << 24;

struct Settings {
  std::string mode, coordinates, nearest;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

Settings SettingsOf(const OnnxNode& node, bool is_resize) {
  Settings settings;
  settings.mode = node.String("mode", "nearest");
  const bool is_old = !is_resize || node.opset() < 11;
  settings.coordinates =
      is_old ? "asymmetric" : node.String("coordinate_transformation_mode", "half_pixel");
  settings.nearest = is_old ? "simple" : node.String("nearest_mode", "round_prefer_floor");
  settings.cubic_a = node.Float("cubic_coeff_a", -0.75f);
  settings.exclude_outside = node.Int("exclude_outside", 0) != 0;
  if (settings.mode == "bilinear") settings.mode = "linear";
  if (settings.mode != "nearest" && settings.mode != "linear" && settings.mode != "cubic") {
    node.Unsupported("mode = \"", settings.mode, "\"");
  }
  static const std::vector<std::string> known = {"half_pixel", "asymmetric", "pytorch_half_pixel",
                                                 "align_corners", "half_pixel_symmetric"};
  if (std::ranges::count(known, settings.coordinates) == 0) {
    node.Unsupported("coordinate_transformation_mode = \"", settings.coordinates, "\"");
  }
  settings.antialias = node.Int("antialias", 0) != 0 && settings.mode != "nearest";
  return settings;
}

// One axis: its extents, and elements of the result for each of the input.
struct Axis {
  int64_t in = 0, out = 0;
  double scale = 1;
  bool is_exact = false;  // the scale is out / in
};

// Returns x / scale. A given scale divides in float32, as runtimes do: places at the border between
// two elements depend on it.
double Unscaled(const Axis& axis, double x) {
  if (axis.is_exact) return x * static_cast<double>(axis.in) / static_cast<double>(axis.out);
  return static_cast<float>(x) / static_cast<float>(axis.scale);
}

double Source(const Settings& settings, const Axis& axis, int64_t place) {
  const auto x = static_cast<double>(place);
  const auto in = static_cast<double>(axis.in);
  const auto out = static_cast<double>(axis.out);
  if (settings.coordinates == "asymmetric") return Unscaled(axis, x);
  if (settings.coordinates == "align_corners")
    return axis.out == 1 ? 0 : x * (in - 1) / (axis.scale * in - 1);
  if (settings.coordinates == "pytorch_half_pixel" && axis.out == 1) return 0;
  if (settings.coordinates == "half_pixel_symmetric") {
    // The center stays where it is if the scale doesn't make a whole extent.
    const double adjustment = out / (axis.scale * in);
    const double center = in / 2;
    return center * (1 - adjustment) + Unscaled(axis, x + 0.5) - 0.5;
  }
  return Unscaled(axis, x + 0.5) - 0.5;
}

int64_t Nearest(const OnnxNode& node, const std::string& mode, double x, double scale) {
  // Before opset 11 there were no modes. Runtimes round up where elements become fewer.
  if (mode == "simple") return static_cast<int64_t>(scale < 1 ? std::ceil(x) : std::floor(x));
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (mode == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  node.Unsupported("nearest_mode = \"", mode, "\"");
}

double Cubic(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Adds the weights of one place of the result to its column.
void AddWeights(const Settings& settings, const Axis& axis, int64_t place,
                std::vector<float>* weights) {
  const double x = Source(settings, axis, place);
  const auto base = static_cast<int64_t>(std::floor(x));
  const bool is_linear = settings.mode == "linear";
  // Against aliasing, the filter is as wide as what a place of the result stands for.
  const double narrowing = settings.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const auto before = static_cast<int64_t>(std::floor(-(is_linear ? 1 : 2) / narrowing)) + 1;
  std::vector<std::pair<int64_t, double>> taps;
  double sum = 0;
  for (int64_t i = base + before; i <= base + 1 - before; ++i) {
    const double distance = (x - static_cast<double>(i)) * narrowing;
    double weight =
        is_linear ? std::max(1 - std::abs(distance), 0.0) : Cubic(distance, settings.cubic_a);
    if (settings.exclude_outside && (i < 0 || i >= axis.in)) weight = 0;
    sum += weight;
    taps.emplace_back(std::clamp<int64_t>(i, 0, axis.in - 1), weight);
  }
  const bool must_scale = settings.exclude_outside || settings.antialias;
  for (const auto& [i, weight] : taps) {
    const double share = must_scale ? weight / sum : weight;
    (*weights)[static_cast<size_t>(i * axis.out + place)] += static_cast<float>(share);
  }
}

Variable Picked(const OnnxNode& node, const Variable& x, const Settings& settings, const Axis& axis,
                int64_t dim) {
  Ints places;
  for (int64_t i = 0; i < axis.out; ++i) {
    const int64_t place = Nearest(node, settings.nearest, Source(settings, axis, i), axis.scale);
    places.push_back(std::clamp<int64_t>(place, 0, axis.in - 1));
  }
  return layers::Gather(x, layers::AssignValue({axis.out}, places), dim);
}

Variable Blended(const Variable& x, const Settings& settings, const Axis& axis, int64_t dim) {
  std::vector<float> weights(static_cast<size_t>(axis.in * axis.out));
  for (int64_t i = 0; i < axis.out; ++i) AddWeights(settings, axis, i, &weights);
  Variable matrix = layers::AssignValue({axis.in, axis.out}, weights);
  if (x.dtype() != DType::kFloat32) matrix = layers::Cast(matrix, x.dtype());
  const auto last = static_cast<int64_t>(x.dims().size()) - 1;
  Ints permutation;
  for (int64_t i = 0; i <= last; ++i) permutation.push_back(i);
  std::swap(permutation[static_cast<size_t>(dim)], permutation.back());
  if (dim == last) return layers::MatMul(x, matrix);
  return layers::Transpose(layers::MatMul(layers::Transpose(x, permutation), matrix), permutation);
}

// Numbers for each axis of x: `given` are those of `axes`, the others are 1 or the extents of x.
std::vector<double> Floats(const OnnxNode& node, size_t i) {
  std::vector<double> numbers;
  if (!node.Has(i)) return numbers;
  const Tensor* known = node.Known(i);
  if (known == nullptr) node.Unsupported("its scales depend on data");
  if (known->dtype() != DType::kFloat32) node.Invalid("its scales are of ", known->dtype());
  for (const float number : known->values<float>()) numbers.push_back(number);
  return numbers;
}

std::vector<Axis> AxesOf(const OnnxNode& node, const Variable& x, std::vector<double> scales,
                         const Ints& sizes) {
  Ints axes = node.IntList("axes");
  for (int64_t& axis : axes) axis = node.Axis(axis, x.dims().size());
  if (axes.empty()) {
    for (size_t i = 0; i < x.dims().size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  const size_t count = sizes.empty() ? scales.size() : sizes.size();
  if (count != axes.size()) node.Invalid("has ", count, " numbers for ", axes.size(), " axes");
  const std::string policy = node.String("keep_aspect_ratio_policy", "stretch");
  double common = policy == "not_smaller" ? 0 : 1e30;
  for (size_t k = 0; k < sizes.size() && policy != "stretch"; ++k) {
    const int64_t extent = x.dims()[static_cast<size_t>(axes[k])];
    if (extent < 1) node.Unsupported("keeps the ratio of extents that only a run knows");
    const double scale = static_cast<double>(sizes[k]) / static_cast<double>(extent);
    common = policy == "not_smaller" ? std::max(common, scale) : std::min(common, scale);
  }
  std::vector<Axis> all(x.dims().size());
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t extent = x.dims()[static_cast<size_t>(axes[k])];
    Axis& axis = all[static_cast<size_t>(axes[k])];
    const bool stays =
        sizes.empty() ? scales[k] == 1.0 : extent > 0 && sizes[k] == extent && policy == "stretch";
    if (stays) continue;
    if (extent < 1) node.Unsupported("resizes axis ", axes[k], ", whose extent only a run knows");
    axis.in = extent;
    if (sizes.empty()) {
      axis.scale = scales[k];
      axis.out = static_cast<int64_t>(std::floor(static_cast<double>(extent) * axis.scale));
    } else if (policy == "stretch") {
      axis.out = sizes[k];
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(extent);
      axis.is_exact = true;
    } else {
      axis.scale = common;
      axis.out = static_cast<int64_t>(std::floor(common * static_cast<double>(extent) + 0.5));
    }
    if (!(axis.scale > 0) || axis.out < 1 || axis.out > kMostWeights ||
        axis.out > kMostWeights / axis.in) {
      node.Unsupported("resizes ", axis.in, " elements to ", axis.out);
    }
  }
  return all;
}

// What a node says of the axes of an image [N, C, H, W].
struct ImageSize {
  std::vector<double> scales;   // of height and width, or
  Ints sizes;                   // these, or
  std::optional<size_t> input;  // the input with the sizes, which only a run knows,
  int64_t first = 0;            // from this number on
};

// Whether the numbers for N and C may leave these as they are; a run may know others.
bool MayKeep(const Variable& x, const Ints& sizes) {
  const auto fits = [&](size_t i) {
    return sizes[i] < 0 || x.dims()[i] < 0 || sizes[i] == x.dims()[i];
  };
  return fits(0) && fits(1);
}

// Returns nothing if x isn't of images, or if other axes than height and width are resized.
std::optional<ImageSize> ImageSizeOf(const OnnxNode& node, const Variable& x,
                                     const std::vector<double>& scales, const Ints& sizes,
                                     std::optional<size_t> input) {
  if (x.dims().size() != 4 || !IsFloat(x.dtype())) return std::nullopt;
  if (node.String("keep_aspect_ratio_policy", "stretch") != "stretch") return std::nullopt;
  Ints axes = node.IntList("axes");
  for (int64_t& axis : axes) axis = node.Axis(axis, 4);
  const bool is_all = axes.empty();
  if (!is_all && axes != Ints{2, 3}) return std::nullopt;
  const size_t count = is_all ? 4 : 2;
  ImageSize size{.input = input, .first = is_all ? 2 : 0};
  if (input) {
    const auto known_dims = node.KnownDims(*input);
    if (!known_dims || known_dims->size() != count) return std::nullopt;
    if (is_all && !MayKeep(x, *known_dims)) return std::nullopt;
    return size;
  }
  if ((scales.empty() ? sizes.size() : scales.size()) != count) return std::nullopt;
  const auto first = static_cast<long>(size.first);
  if (scales.empty()) {
    if (is_all && (sizes[0] != x.dims()[0] || sizes[1] != x.dims()[1])) return std::nullopt;
    size.sizes.assign(sizes.begin() + first, sizes.end());
  } else {
    if (is_all && (scales[0] != 1 || scales[1] != 1)) return std::nullopt;
    size.scales.assign(scales.begin() + first, scales.end());
  }
  return size;
}

// Whether an op of Skiff takes the pixels that the settings ask for. Where pixels are counted from
// their centers, the nearest one is that of ⌊place / scale⌋ if the scale is whole.
bool SamplesAlike(const Settings& settings, const ImageSize& size) {
  const auto all_scales = [&](auto fits) {
    return !size.scales.empty() && std::ranges::all_of(size.scales, fits);
  };
  if (settings.mode == "nearest") {
    if (settings.coordinates == "asymmetric") {
      return settings.nearest == "floor" ||
             (settings.nearest == "simple" && all_scales([](double scale) { return scale >= 1; }));
    }
    return settings.coordinates == "half_pixel" && settings.nearest == "round_prefer_floor" &&
           all_scales([](double scale) { return scale == std::floor(scale); });
  }
  if (settings.mode != "linear" || settings.antialias || settings.exclude_outside) return false;
  if (settings.coordinates == "asymmetric" || settings.coordinates == "pytorch_half_pixel") {
    return true;
  }
  if (settings.coordinates == "align_corners") return size.scales.empty();
  // Where one pixel remains of many, Skiff's op takes the first one, as PyTorch does.
  const auto makes_more = [](auto number) { return number > 1; };
  return settings.coordinates == "half_pixel" &&
         (all_scales(makes_more) ||
          (!size.sizes.empty() && std::ranges::all_of(size.sizes, makes_more)));
}

Variable ResizedImage(const OnnxNode& node, const Variable& x, const Settings& settings,
                      const ImageSize& size) {
  const bool is_nearest = settings.mode == "nearest";
  Op op(is_nearest ? "nearest_interp_v2" : "bilinear_interp_v2");
  op.SetInput("X", {x.name()});
  op.SetAttr("interp_method", std::string(is_nearest ? "nearest" : "bilinear"));
  op.SetAttr("align_corners", settings.coordinates == "align_corners");
  op.SetAttr("align_mode", int32_t{settings.coordinates == "asymmetric"});
  if (size.input) {
    const Variable sizes = layers::Slice(
        node.In(*size.input), {.axes = {0}, .starts = {size.first}, .ends = {size.first + 2}});
    op.SetInput("OutSize", {layers::Cast(sizes, DType::kInt32).name()});
  } else if (size.scales.empty()) {
    op.SetAttr("out_h", size.sizes[0]);
    op.SetAttr("out_w", size.sizes[1]);
  } else {
    op.SetAttr("scale", std::vector<float>(size.scales.begin(), size.scales.end()));
  }
  const Variable resized = node.Emit(std::move(op));
  // A run refuses sizes with another N or C.
  return size.input && size.first > 0 ? layers::ReshapeTo(resized, node.In(*size.input)) : resized;
}

void ResizeBy(const OnnxNode& node, bool is_resize, const std::vector<double>& scales,
              const Ints& sizes, std::optional<size_t> input_of_sizes = {}) {
  const Settings settings = SettingsOf(node, is_resize);
  Variable x = node.In(0);
  const auto image_size = ImageSizeOf(node, x, scales, sizes, input_of_sizes);
  if (image_size && SamplesAlike(settings, *image_size)) {
    return node.Out(0, ResizedImage(node, x, settings, *image_size));
  }
  if (input_of_sizes) node.Unsupported("its sizes depend on a run");
  const std::vector<Axis> axes = AxesOf(node, x, scales, sizes);
  bool is_same = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].out == 0) continue;
    is_same = false;
    const auto dim = static_cast<int64_t>(i);
    x = settings.mode == "nearest" ? Picked(node, x, settings, axes[i], dim)
                                   : Blended(x, settings, axes[i], dim);
  }
  if (is_same) return node.OutSame(0, 0);
  node.Out(0, x);
}

void Resize(const OnnxNode& node) {
  if (node.opset() < 11) return ResizeBy(node, true, Floats(node, 1), {});
  // An empty tensor is as good as none.
  const std::vector<double> scales = Floats(node, 2);
  if (!scales.empty()) return ResizeBy(node, true, scales, {});
  if (const auto sizes = node.KnownInts(3)) return ResizeBy(node, true, {}, *sizes);
  ResizeBy(node, true, {}, {}, 3);
}

void Upsample(const OnnxNode& node) {
  if (node.opset() >= 9) return ResizeBy(node, false, Floats(node, 1), {});
  const std::vector<float> scales = node.FloatList("scales");
  ResizeBy(node, false, {scales.begin(), scales.end()}, {});
}

}  // namespace

std::vector<OnnxConverterEntry> ResizeConverters() {
  return {
      {"Resize", Resize},
      {"Upsample", Upsample},
  };
}

}  // namespace skiff
