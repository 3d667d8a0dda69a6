// Ops that make, reshape, join and cut tensors.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// Constants that a node makes may not be larger.
constexpr int64_t kMostConstant = int64_t{1} << 24;

int64_t RankOf(const Variable& x) { return static_cast<int64_t>(x.dims().size()); }

void ShapeOf(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Variable x = node.In(0);
  const int64_t rank = RankOf(x);
  const auto bound = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t begin = bound(node.Int("start", 0));
  const int64_t end = bound(node.Int("end", rank));
  // The known dims are enough, even if others aren't known.
  const Ints dims(x.dims().begin() + begin, x.dims().begin() + std::max(begin, end));
  if (std::ranges::all_of(dims, [](int64_t dim) { return dim >= 0; })) {
    return node.OutKnown(0, Tensor::FromValues<int64_t>({static_cast<int64_t>(dims.size())}, dims));
  }
  node.OutPartlyKnown(0, dims);
  if (begin == 0 && end == rank) {
    return node.Out(0, layers::Cast(layers::ShapeOf(x), DType::kInt64));
  }
  node.Out(0, DimsOf(x, begin, end));
}

void Size(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  Op op("size");
  op.SetInput("Input", {node.In(0).name()});
  node.Out(0, node.Emit(std::move(op)));
}

// To dims of which a run knows some.
void ReshapeInRun(const OnnxNode& node, const Variable& x) {
  const auto partly = node.PartlyKnownInts(1);
  // One of them follows from the others.
  if (partly && CanReshape(*partly)) return node.Out(0, layers::Reshape(x, *partly));
  const Variable y = layers::ReshapeTo(x, node.In(1));
  if (partly && std::ranges::count(*partly, 0) == 0) y.var().dims = *partly;
  node.Out(0, y);
}

void Reshape(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const auto known = node.KnownInts(1);
  const bool allow_zero = node.Int("allowzero", 0) != 0;
  if (!known) {
    if (allow_zero) node.Unsupported("allowzero = 1 with a shape that depends on a run");
    return ReshapeInRun(node, x);
  }
  if (allow_zero && std::ranges::count(*known, 0) > 0) {
    node.Unsupported("allowzero = 1 with a dim of 0");
  }
  node.Out(0, layers::Reshape(x, *known));
}

void Transpose(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Variable x = node.In(0);
  Ints reversed(x.dims().size());
  for (size_t i = 0; i < reversed.size(); ++i) {
    reversed[i] = static_cast<int64_t>(reversed.size() - 1 - i);
  }
  const Ints permutation = node.IntList("perm", reversed);
  if (permutation.empty()) return node.OutSame(0, 0);
  node.Out(0, layers::Transpose(x, permutation));
}

void Flatten(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Variable x = node.In(0);
  const int64_t rank = RankOf(x);
  int64_t axis = node.Int("axis", 1);
  if (axis < -rank || axis > rank) node.Invalid("axis ", axis, " of a tensor of rank ", rank);
  if (axis < 0) axis += rank;
  if (axis == 0) return node.Out(0, layers::Reshape(x, {1, -1}));
  if (axis == rank) return node.Out(0, layers::Reshape(x, {-1, 1}));
  node.Out(0, layers::Flatten(x, axis));
}

void Squeeze(const OnnxNode& node) {
  const Variable x = node.In(0);
  const auto axes = node.IntsSince(13, 1, "axes");
  Ints dropped;
  if (axes) {
    for (const int64_t axis : *axes) dropped.push_back(node.Axis(axis, x.dims().size()));
    // Skiff leaves axes of another extent as they are.
    for (const int64_t axis : dropped) {
      const int64_t extent = x.dims()[static_cast<size_t>(axis)];
      if (extent >= 0 && extent != 1) node.Invalid("axis ", axis, " has the extent ", extent);
    }
    if (dropped.empty()) return node.OutSame(0, 0);
  } else if (std::ranges::count(x.dims(), -1) > 0) {
    node.Unsupported("drops the axes of extent 1, but some extents are known only in a run");
  } else if (std::ranges::count(x.dims(), 1) == 0) {
    return node.OutSame(0, 0);
  }
  node.Out(0, layers::Squeeze(x, dropped));
  if (x.dims().size() <= 1) node.OutPartlyKnown(0, node.PartlyKnownInts(0));
}

void Unsqueeze(const OnnxNode& node) {
  const Variable x = node.In(0);
  const auto axes = node.IntsSince(13, 1, "axes");
  if (!axes) node.Invalid("has no axes");
  Ints inserted;
  for (const int64_t axis : *axes)
    inserted.push_back(node.Axis(axis, x.dims().size() + axes->size()));
  std::ranges::sort(inserted);
  if (std::ranges::adjacent_find(inserted) != inserted.end())
    node.Invalid("an axis is there twice");
  if (inserted.empty()) return node.OutSame(0, 0);
  node.Out(0, layers::Unsqueeze(x, inserted));
  if (x.dims().empty() && inserted.size() == 1) node.OutPartlyKnown(0, node.PartlyKnownInts(0));
}

void Concat(const OnnxNode& node) {
  node.CheckInputs(1, node.input_count());
  if (!node.HasAttr("axis")) node.Invalid("has no axis");
  if (node.input_count() == 1) return node.OutSame(0, 0);
  std::vector<Variable> xs;
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!node.Has(i)) node.Invalid("input ", i, " is absent");
    xs.push_back(node.In(i));
  }
  node.Out(0, layers::Concat(xs, node.Axis(node.Int("axis", 0), xs[0].dims().size())));
  Ints joined;
  for (size_t i = 0; i < xs.size(); ++i) {
    const auto part = node.PartlyKnownInts(i);
    if (xs[i].dims().size() != 1 || !(part || xs[i].dims()[0] == 1)) return;
    const Ints unknown = {-1};
    joined.insert(joined.end(), part ? part->begin() : unknown.begin(),
                  part ? part->end() : unknown.end());
  }
  node.OutPartlyKnown(0, joined);
}

Ints EqualParts(const OnnxNode& node, int64_t extent, int64_t count) {
  if (extent < 0) node.Unsupported("splits an axis whose extent is known only in a run");
  const int64_t part = (extent + count - 1) / count;
  Ints parts(static_cast<size_t>(count), part);
  parts.back() = extent - part * (count - 1);
  if (parts.back() <= 0) node.Unsupported("splits ", extent, " elements into ", count, " parts");
  return parts;
}

void Split(const OnnxNode& node) {
  const Variable x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", 0), x.dims().size());
  const auto count = static_cast<int64_t>(node.output_count());
  if (count == 0 || node.Int("num_outputs", count) != count) {
    node.Invalid("has ", count, " outputs, expected ", node.Int("num_outputs", count));
  }
  auto parts = node.IntsSince(13, 1, "split");
  if (!parts) parts = EqualParts(node, x.dims()[static_cast<size_t>(axis)], count);
  if (static_cast<int64_t>(parts->size()) != count) {
    node.Invalid("has ", count, " outputs, but ", parts->size(), " extents");
  }
  if (count == 1 && x.dims()[static_cast<size_t>(axis)] == parts->front())
    return node.OutSame(0, 0);
  const std::vector<Variable> pieces = layers::SplitSections(x, *parts, axis);
  for (size_t i = 0; i < pieces.size(); ++i) node.Out(i, pieces[i]);
}

int64_t Within32(int64_t number) {
  return std::clamp<int64_t>(number, std::numeric_limits<int32_t>::min() + 1,
                             std::numeric_limits<int32_t>::max());
}

// Turns bounds of a walk to the front into those that Skiff understands, where an end of -1 means
// that the first element is the last one.
void SetDownward(const OnnxNode& node, int64_t extent, int64_t* start, int64_t* end) {
  if (extent < 0) {
    const bool from_end = *start == -1 || *start >= std::numeric_limits<int32_t>::max();
    const bool to_front = *end <= -int64_t{std::numeric_limits<int32_t>::max()};
    if (!from_end || !to_front) {
      node.Unsupported("walks back along an axis whose extent is known only in a run");
    }
    *start = std::numeric_limits<int32_t>::max();
    *end = -1;
    return;
  }
  const auto front = [&](int64_t at) { return at < 0 ? std::max(at + extent, int64_t{-1}) : at; };
  *start = std::min(front(*start), extent - 1);
  *end = std::min(front(*end), extent - 1);
  if (*start <= *end) node.Unsupported("takes no elements");
}

struct Bounds {
  Ints axes, starts, ends, steps;
};

Bounds AllBounds(const OnnxNode& node, size_t rank) {
  Bounds bounds;
  const bool are_inputs = node.opset() >= 10;
  bounds.starts = are_inputs ? node.Ints(1) : node.IntList("starts");
  bounds.ends = are_inputs ? node.Ints(2) : node.IntList("ends");
  const size_t count = bounds.starts.size();
  if (are_inputs ? node.Has(3) : node.HasAttr("axes")) {
    bounds.axes = are_inputs ? node.Ints(3) : node.IntList("axes");
  } else {
    for (size_t i = 0; i < count; ++i) bounds.axes.push_back(static_cast<int64_t>(i));
  }
  bounds.steps = are_inputs && node.Has(4) ? node.Ints(4) : Ints(count, 1);
  if (bounds.ends.size() != count || bounds.axes.size() != count || bounds.steps.size() != count) {
    node.Invalid("starts, ends, axes and steps are of different lengths");
  }
  for (int64_t& axis : bounds.axes) axis = node.Axis(axis, rank);
  return bounds;
}

// A slice by numbers that are known in a run: starts and ends are vectors of whole numbers.
void SliceInRun(const OnnxNode& node) {
  const Variable x = node.In(0);
  Ints axes;
  for (const int64_t axis : node.Ints(3)) axes.push_back(node.Axis(axis, x.dims().size()));
  const int64_t count = node.In(1).dims().empty() ? -1 : node.In(1).dims()[0];
  if (count < 0) node.Unsupported("nobody knows how many axes it cuts");
  if (!node.Has(3)) {
    for (int64_t i = 0; i < count; ++i) axes.push_back(i);
  }
  for (const int64_t step : node.Ints(4)) {
    if (step != 1) node.Unsupported("has the step ", step, " and bounds that depend on a run");
  }
  Op op("slice");
  op.SetInput("Input", {x.name()});
  op.SetInput("StartsTensor", {node.In(1).name()});
  op.SetInput("EndsTensor", {node.In(2).name()});
  op.SetAttr("axes", axes);
  node.Out(0, node.Emit(std::move(op)));
}

void Slice(const OnnxNode& node) {
  const bool in_run = node.opset() >= 10 && (node.Known(1) == nullptr || node.Known(2) == nullptr);
  if (in_run) return SliceInRun(node);
  const Variable x = node.In(0);
  Bounds bounds = AllBounds(node, x.dims().size());
  if (bounds.axes.empty()) return node.OutSame(0, 0);
  for (size_t i = 0; i < bounds.axes.size(); ++i) {
    if (bounds.steps[i] == 0) node.Invalid("has a step of 0");
    const int64_t extent = x.dims()[static_cast<size_t>(bounds.axes[i])];
    if (bounds.steps[i] < 0) SetDownward(node, extent, &bounds.starts[i], &bounds.ends[i]);
    bounds.starts[i] = Within32(bounds.starts[i]);
    bounds.ends[i] = Within32(bounds.ends[i]);
    bounds.steps[i] = Within32(bounds.steps[i]);
  }
  if (std::ranges::all_of(bounds.steps, [](int64_t step) { return step == 1; })) {
    node.Out(0,
             layers::Slice(x, {.axes = bounds.axes, .starts = bounds.starts, .ends = bounds.ends}));
    const auto partly = node.PartlyKnownInts(0);
    if (!partly || x.dims().size() != 1 || bounds.axes.size() != 1) return;
    const auto count = static_cast<int64_t>(partly->size());
    const auto place = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
    };
    const int64_t begin = place(bounds.starts[0]);
    const int64_t end = std::max(begin, place(bounds.ends[0]));
    return node.OutPartlyKnown(0, Ints(partly->begin() + begin, partly->begin() + end));
  }
  node.Out(0, layers::StridedSlice(x, {.axes = bounds.axes,
                                       .starts = bounds.starts,
                                       .ends = bounds.ends,
                                       .strides = bounds.steps}));
}

void Expand(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const auto known = node.KnownInts(1);
  if (!known) {
    const Variable dims = node.In(1);
    if (dims.dims().size() != 1 || dims.dims()[0] != RankOf(x)) {
      node.Unsupported("makes a shape of another rank that depends on a run");
    }
    // An extent of 1 leaves that of x.
    return node.Out(0, layers::ExpandTo(x, layers::ElementwiseMax(dims, DimsOf(x, 0, RankOf(x)))));
  }
  Ints dims = *known;
  while (static_cast<int64_t>(dims.size()) < RankOf(x)) dims.insert(dims.begin(), 1);
  const size_t added = dims.size() - x.dims().size();
  for (size_t i = added; i < dims.size(); ++i) {
    if (dims[i] == 1) dims[i] = -1;
  }
  node.Out(0, layers::Expand(x, dims));
}

void Tile(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const auto known = node.KnownInts(1);
  if (known && static_cast<int64_t>(known->size()) != RankOf(x)) {
    node.Invalid("has ", known->size(), " numbers for ", RankOf(x), " axes");
  }
  if (known) return node.Out(0, layers::Tile(x, *known));
  Op op("tile");
  op.SetInput("X", {x.name()}).SetInput("RepeatTimes", {node.In(1).name()});
  node.Out(0, node.Emit(std::move(op)));
}

// The place in an axis of `extent` elements that an index outside of it stands for.
int64_t PlaceOutside(const std::string& mode, int64_t index, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(index, 0, extent - 1);
  if (mode == "wrap") return ((index % extent) + extent) % extent;
  if (extent == 1) return 0;
  const int64_t period = 2 * (extent - 1);
  const int64_t place = ((index % period) + period) % period;
  return place < extent ? place : period - place;
}

// A border of copies along one axis; a negative one cuts.
Variable PaddedByCopies(const OnnxNode& node, const Variable& x, const std::string& mode,
                        size_t axis, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return x;
  const int64_t extent = x.dims()[axis];
  if (extent <= 0) node.Unsupported("pads axis ", axis, ", whose extent is known only in a run");
  if (extent + before + after <= 0 || extent + before + after > kMostConstant) {
    node.Unsupported("makes an axis of ", extent + before + after, " elements");
  }
  Ints places;
  for (int64_t i = -before; i < extent + after; ++i)
    places.push_back(PlaceOutside(mode, i, extent));
  const auto count = static_cast<int64_t>(places.size());
  return layers::Gather(x, layers::AssignValue({count}, places), static_cast<int64_t>(axis));
}

Variable PaddedByConstant(const OnnxNode& node, const Variable& x, const Ints& before,
                          const Ints& after, double value) {
  Ints paddings;
  layers::SliceOptions cut;
  for (size_t i = 0; i < before.size(); ++i) {
    paddings.push_back(std::max<int64_t>(before[i], 0));
    paddings.push_back(std::max<int64_t>(after[i], 0));
    if (before[i] >= 0 && after[i] >= 0) continue;
    cut.axes.push_back(static_cast<int64_t>(i));
    cut.starts.push_back(std::max<int64_t>(-before[i], 0));
    cut.ends.push_back(after[i] < 0 ? after[i] : std::numeric_limits<int32_t>::max());
  }
  const Variable inner = cut.axes.empty() ? x : layers::Slice(x, cut);
  const DType dtype = x.dtype();
  const bool has_kernel = dtype == DType::kFloat32 || dtype == DType::kFloat64 ||
                          dtype == DType::kInt32 || dtype == DType::kInt64 || IsHalf(dtype);
  if (has_kernel && static_cast<double>(static_cast<float>(value)) != value &&
      dtype != DType::kFloat32 && std::isfinite(value)) {
    node.Unsupported("pads by ", value, ", which isn't exact in float32");
  }
  const Variable wide = has_kernel ? inner : layers::Cast(inner, DType::kInt32);
  const Variable padded = layers::Pad(wide, paddings, static_cast<float>(value));
  return has_kernel ? padded : layers::Cast(padded, dtype);
}

void Pad(const OnnxNode& node) {
  Variable x = node.In(0);
  const size_t rank = x.dims().size();
  const std::string mode = node.String("mode", "constant");
  const auto pads = node.IntsSince(11, 1, "pads");
  const double value = node.opset() >= 11 ? node.Number(2, 0.0) : node.Float("value", 0.0f);
  Ints axes;
  if (node.Has(3)) {
    for (const int64_t axis : node.Ints(3)) axes.push_back(node.Axis(axis, rank));
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (!pads || pads->size() != 2 * axes.size()) {
    node.Invalid("has ", pads ? pads->size() : 0, " pads, expected ", 2 * axes.size());
  }
  Ints before(rank), after(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    before[static_cast<size_t>(axes[i])] = (*pads)[i];
    after[static_cast<size_t>(axes[i])] = (*pads)[i + axes.size()];
  }
  if (mode == "constant") {
    return node.Out(0, PaddedByConstant(node, x, before, after, value));
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap") {
    node.Unsupported("mode = \"", mode, "\"");
  }
  const Variable inner = x;
  for (size_t i = 0; i < rank; ++i) x = PaddedByCopies(node, x, mode, i, before[i], after[i]);
  if (x.name() == inner.name()) return node.OutSame(0, 0);
  node.Out(0, x);
}

// Cuts axes, or pads them by zeros, so that their centers stay.
void CenterCropPad(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const size_t rank = x.dims().size();
  const Ints extents = node.Ints(1);
  Ints axes = node.IntList("axes");
  if (axes.empty()) {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (extents.size() != axes.size()) node.Invalid("has ", extents.size(), " extents");
  Ints before(rank), after(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(node.Axis(axes[i], rank));
    const int64_t extent = x.dims()[axis];
    if (extent < 0) node.Unsupported("crops an axis whose extent only a run knows");
    const int64_t missing = extents[i] - extent;
    // What can't be halved is missing at the end, and cut at the front of the rest.
    before[axis] = missing >= 0 ? missing / 2 : -(-missing / 2);
    after[axis] = missing - before[axis];
  }
  node.Out(0, PaddedByConstant(node, x, before, after, 0.0));
}

void ConstantOfShape(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Tensor value =
      node.HasAttr("value") ? node.TensorOf("value") : Tensor::FromValues<float>({1}, {0.0f});
  if (value.element_count() != 1)
    node.Invalid("its value has ", value.element_count(), " elements");
  double number = 0;
  switch (value.dtype()) {
    case DType::kFloat32:
      number = value.Item<float>();
      break;
    case DType::kFloat64:
      number = value.Item<double>();
      break;
    case DType::kInt64:
      number = static_cast<double>(value.Item<int64_t>());
      break;
    case DType::kInt32:
      number = value.Item<int32_t>();
      break;
    case DType::kBool:
      number = value.Item<bool>() ? 1 : 0;
      break;
    case DType::kUint8:
      number = value.Item<uint8_t>();
      break;
    case DType::kInt8:
      number = value.Item<int8_t>();
      break;
    default:
      node.Unsupported("its value is of ", value.dtype());
  }
  if (value.dtype() == DType::kInt64 && static_cast<int64_t>(number) != value.Item<int64_t>()) {
    node.Unsupported("its value is beyond 2^53");
  }
  const auto dims = node.KnownInts(0);
  if (dims) return node.Out(0, layers::FillConstant(*dims, value.dtype(), number));
  Op op("fill_constant");
  op.SetInput("ShapeTensor", {node.In(0).name()});
  op.SetAttr("dtype", static_cast<int32_t>(value.dtype()));
  op.SetAttr("value", static_cast<float>(number));
  if (static_cast<double>(static_cast<float>(number)) != number) {
    node.Unsupported("its value isn't exact in float32");
  }
  node.Out(0, node.Emit(std::move(op)));
}

template <typename T>
Tensor VectorOf(const std::vector<T>& values) {
  return Tensor::FromValues<T>({static_cast<int64_t>(values.size())}, values);
}

void Constant(const OnnxNode& node) {
  if (node.HasAttr("value")) return node.OutKnown(0, node.TensorOf("value"));
  if (node.HasAttr("value_float")) {
    return node.OutKnown(0, Tensor::FromValues<float>({}, {node.Float("value_float", 0)}));
  }
  if (node.HasAttr("value_int")) {
    return node.OutKnown(0, Tensor::FromValues<int64_t>({}, {node.Int("value_int", 0)}));
  }
  if (node.HasAttr("value_floats"))
    return node.OutKnown(0, VectorOf(node.FloatList("value_floats")));
  if (node.HasAttr("value_ints")) return node.OutKnown(0, VectorOf(node.IntList("value_ints")));
  node.Unsupported("is a constant of strings or a sparse one");
}

// The window a0 - a1 cos(2 pi k / n) + a2 cos(4 pi k / n).
void CosineWindow(const OnnxNode& node, double a0, double a1, double a2) {
  node.CheckInputs(1, 1);
  const Ints size = node.Ints(0);
  if (size.size() != 1 || size[0] < 1) node.Invalid("its size isn't one number above 0");
  if (size[0] > kMostConstant) node.Unsupported("makes ", size[0], " numbers");
  const auto n = static_cast<double>(node.Int("periodic", 1) != 0 ? size[0] : size[0] - 1);
  std::vector<double> values;
  for (int64_t k = 0; k < size[0]; ++k) {
    const double angle = n == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(k) / n;
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  const DType dtype = node.DTypeOfOnnx(node.Int("output_datatype", 1));
  node.Out(0, layers::Cast(layers::AssignValue(size, values), dtype));
}
void HannWindow(const OnnxNode& node) { CosineWindow(node, 0.5, 0.5, 0); }
void HammingWindow(const OnnxNode& node) { CosineWindow(node, 25.0 / 46, 21.0 / 46, 0); }
void BlackmanWindow(const OnnxNode& node) { CosineWindow(node, 0.42, 0.5, 0.08); }

void Range(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  const DType dtype = node.In(0).dtype();
  if (dtype != DType::kInt32 && dtype != DType::kInt64 && dtype != DType::kFloat32 &&
      dtype != DType::kFloat64) {
    node.Unsupported("its numbers are of ", dtype);
  }
  Op op("range");
  const auto scalar = [&](size_t i) { return layers::Reshape(node.In(i), {1}).name(); };
  op.SetInput("Start", {scalar(0)}).SetInput("End", {scalar(1)}).SetInput("Step", {scalar(2)});
  node.Out(0, node.Emit(std::move(op)));
}

void EyeLike(const OnnxNode& node) {
  const Variable x = node.In(0);
  if (x.dims().size() != 2 || x.dims()[0] < 0 || x.dims()[1] < 0) {
    node.Unsupported("its input isn't a matrix of known extents");
  }
  const int64_t rows = x.dims()[0];
  const int64_t columns = x.dims()[1];
  if (MultiplyCounts(rows, columns) > kMostConstant) node.Unsupported("makes a large matrix");
  const int64_t k = node.Int("k", 0);
  std::vector<int32_t> values;
  for (int64_t i = 0; i < rows * columns; ++i) values.push_back(i / columns + k == i % columns);
  const DType dtype = node.HasAttr("dtype") ? node.DTypeOfOnnx(node.Int("dtype", 0)) : x.dtype();
  node.Out(0, layers::Cast(layers::AssignValue({rows, columns}, values), dtype));
}

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
  if (b < 1 || b > d[1] || d[1] % (b * b) != 0) node.Invalid("blocksize = ", b);
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
  if (b < 1 || d[2] % b != 0 || d[3] % b != 0) node.Invalid("blocksize = ", b);
  const Variable cut = layers::Reshape(x, {d[0], d[1], d[2] / b, b, d[3] / b, b});
  const Variable moved = layers::Transpose(cut, {0, 3, 5, 1, 2, 4});
  node.Out(0, layers::Reshape(moved, {d[0], d[1] * b * b, d[2] / b, d[3] / b}));
}

void Trilu(const OnnxNode& node) {
  const Variable x = node.In(0);
  const auto k = static_cast<int64_t>(node.Number(1, 0));
  node.Out(0,
           node.Int("upper", 1) != 0 ? layers::Triu(x, Within32(k)) : layers::Tril(x, Within32(k)));
}

}  // namespace

std::vector<OnnxConverterEntry> ShapeConverters() {
  return {
      {"BlackmanWindow", BlackmanWindow},
      {"CenterCropPad", CenterCropPad},
      {"Concat", Concat},
      {"Constant", Constant},
      {"ConstantOfShape", ConstantOfShape},
      {"DepthToSpace", DepthToSpace},
      {"Expand", Expand},
      {"EyeLike", EyeLike},
      {"Flatten", Flatten},
      {"HammingWindow", HammingWindow},
      {"HannWindow", HannWindow},
      {"Pad", Pad},
      {"Range", Range},
      {"Reshape", Reshape},
      {"Shape", ShapeOf},
      {"Size", Size},
      {"Slice", Slice},
      {"SpaceToDepth", SpaceToDepth},
      {"Split", Split},
      {"Squeeze", Squeeze},
      {"Tile", Tile},
      {"Transpose", Transpose},
      {"Trilu", Trilu},
      {"Unsqueeze", Unsqueeze},
  };
}

}  // namespace skiff
