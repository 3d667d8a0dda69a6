// Ops that add a border to a tensor, or cut it away.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/builder/tensor_layers.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

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

// Whether the border is one of Skiff's op for images: around the last two axes of up to four.
bool IsBorderOfImages(const Variable& x, const std::string& mode, const Ints& before,
                      const Ints& after) {
  const size_t rank = x.dims().size();
  if (rank < 2 || rank > 4 || !IsFloat(x.dtype()) || (mode != "reflect" && mode != "edge")) {
    return false;
  }
  for (size_t i = 0; i < rank; ++i) {
    if (before[i] < 0 || after[i] < 0) return false;
    if (i + 2 < rank && before[i] + after[i] > 0) return false;
  }
  return true;
}

// A border whose size is the same for all extents, which only a run knows.
Variable PaddedAsImages(const Variable& x, const std::string& mode, const Ints& before,
                        const Ints& after) {
  const size_t rank = x.dims().size();
  Ints missing;
  for (size_t i = rank; i < 4; ++i) missing.push_back(static_cast<int64_t>(i - rank));
  const Variable images = missing.empty() ? x : layers::Unsqueeze(x, missing);
  const Variable padded = layers::Pad2d(
      images, {.paddings = {before[rank - 2], after[rank - 2], before[rank - 1], after[rank - 1]},
               .mode = mode});
  return missing.empty() ? padded : layers::Squeeze(padded, missing);
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
  for (const int64_t pad : *pads) {
    if (pad < -kMostConstant || pad > kMostConstant) node.Unsupported("pads by ", pad);
  }
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
  const bool is_known = std::ranges::all_of(x.dims(), [](int64_t dim) { return dim > 0; });
  if (!is_known && IsBorderOfImages(x, mode, before, after)) {
    return node.Out(0, PaddedAsImages(x, mode, before, after));
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
  if (extents.size() != axes.size()) {
    node.Invalid("has ", extents.size(), " extents, expected ", axes.size());
  }
  Ints before(rank), after(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(node.Axis(axes[i], rank));
    const int64_t extent = x.dims()[axis];
    if (extent < 0) node.Unsupported("crops an axis whose extent only a run knows");
    if (extents[i] < 0) node.Invalid("asks for an extent of ", extents[i]);
    const int64_t missing = extents[i] - extent;
    // What can't be halved is missing at the end, and cut at the front of the rest.
    before[axis] = missing >= 0 ? missing / 2 : -(-missing / 2);
    after[axis] = missing - before[axis];
  }
  node.Out(0, PaddedByConstant(node, x, before, after, 0.0));
}

}  // namespace

std::vector<OnnxConverterEntry> PadConverters() {
  return {
      {"CenterCropPad", CenterCropPad},
      {"Pad", Pad},
  };
}

}  // namespace skiff
