// Ops that reshape, join, split and repeat tensors.
#include <algorithm>
#include <numeric>
#include <source_location>
#include <utility>
#include <vector>

#include "framework/builder/elementwise.h"
#include "framework/builder/tensor_layers.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

void ShapeOf(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const Variable x = node.In(0);
  const int64_t rank = RankOf(x);
  const auto [begin, end] = SlicedPart(node.Int("start", 0), node.Int("end", rank), rank);
  // The known dims are enough, even if others aren't known.
  const Ints dims(x.dims().begin() + begin, x.dims().begin() + end);
  if (std::ranges::all_of(dims, [](int64_t dim) { return dim >= 0; })) {
    return node.OutKnown(0, Tensor::FromValues<int64_t>({static_cast<int64_t>(dims.size())}, dims));
  }
  node.OutKnownDims(0, dims);
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
  const auto partly = node.KnownDims(1);
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
  // With allowzero, as PyTorch writes it, a dim that is 0 in a run would have to stay 0. Skiff
  // copies that of x, which is the same where both are the size of an empty batch, say.
  if (!known) return ReshapeInRun(node, x);
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
    if (dropped.empty()) return node.OutSame(0, 0);
  } else if (std::ranges::count(x.dims(), -1) > 0) {
    node.Unsupported("drops the axes of extent 1, but some extents are known only in a run");
  } else if (std::ranges::count(x.dims(), 1) == 0) {
    return node.OutSame(0, 0);
  }
  Op op("squeeze2");
  op.SetInput("X", {x.name()}).SetAttr("axes", dropped).SetAttr("strict", true);
  const LayerCall layer(op.type, "", std::source_location::current());
  op.SetOutput("XShape", {layer.NewSavedOutput()});
  node.Out(0, layer.AppendFor(std::move(op)));
  if (x.dims().size() <= 1) node.OutKnownDims(0, node.KnownDims(0));
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
  if (x.dims().empty() && inserted.size() == 1) node.OutKnownDims(0, node.KnownDims(0));
}

// The inputs that have elements. Empty vectors are common where shapes are joined, and a constant
// has at least one element.
std::vector<size_t> FilledInputs(const OnnxNode& node) {
  std::vector<size_t> filled;
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!node.Has(i)) node.Invalid("input ", i, " is absent");
    const Tensor* known = node.Known(i);
    const bool is_empty_vector = known != nullptr && known->shape() == Shape({0});
    if (!is_empty_vector) filled.push_back(i);
  }
  if (filled.empty()) filled.push_back(0);
  return filled;
}

void Concat(const OnnxNode& node) {
  node.CheckInputs(1, node.input_count());
  if (!node.HasAttr("axis")) node.Invalid("has no axis");
  const std::vector<size_t> inputs = FilledInputs(node);
  if (inputs.size() == 1) return node.OutSame(0, inputs[0]);
  std::vector<Variable> xs;
  for (const size_t i : inputs) xs.push_back(node.In(i));
  node.Out(0, layers::Concat(xs, node.Axis(node.Int("axis", 0), xs[0].dims().size())));
  Ints joined;
  for (size_t i = 0; i < xs.size(); ++i) {
    const auto part = node.KnownDims(inputs[i]);
    if (xs[i].dims().size() != 1 || !(part || xs[i].dims()[0] == 1)) return;
    const Ints unknown = {-1};
    joined.insert(joined.end(), part ? part->begin() : unknown.begin(),
                  part ? part->end() : unknown.end());
  }
  node.OutKnownDims(0, joined);
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

void Expand(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const auto known = node.KnownInts(1);
  if (!known) {
    const Variable dims = node.In(1);
    if (dims.dims().size() != 1 || dims.dims()[0] < RankOf(x)) {
      node.Unsupported("makes a shape of fewer or unknown dims that depends on a run");
    }
    Ints leading(static_cast<size_t>(dims.dims()[0] - RankOf(x)));
    std::iota(leading.begin(), leading.end(), 0);
    const Variable aligned = leading.empty() ? x : layers::Unsqueeze(x, leading);
    // An extent of 1 leaves that of x.
    const Variable extents = layers::ElementwiseMax(dims, DimsOf(aligned, 0, RankOf(aligned)));
    return node.Out(0, layers::ExpandTo(aligned, extents));
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

void Trilu(const OnnxNode& node) {
  const Variable x = node.In(0);
  const int64_t k = Within32(node.WholeNumber(1, 0));
  node.Out(0, node.Int("upper", 1) != 0 ? layers::Triu(x, k) : layers::Tril(x, k));
}

}  // namespace

std::vector<OnnxConverterEntry> ShapeConverters() {
  return {
      {"Concat", Concat}, {"Expand", Expand},       {"Flatten", Flatten}, {"Reshape", Reshape},
      {"Shape", ShapeOf}, {"Size", Size},           {"Split", Split},     {"Squeeze", Squeeze},
      {"Tile", Tile},     {"Transpose", Transpose}, {"Trilu", Trilu},     {"Unsqueeze", Unsqueeze},
  };
}

}  // namespace skiff
