// Ops that cut a part out of a tensor.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "framework/builder/current_block.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

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
  if (count < 0) {
    node.Unsupported(
        "its starts are of shape ", Shape(node.In(1).dims()),
        ", expected a vector of known length, with a start for each axis that it cuts");
  }
  if (!node.Has(3)) {
    for (int64_t i = 0; i < count; ++i) axes.push_back(i);
  }
  for (const int64_t step : node.Ints(4)) {
    if (step != 1) node.Unsupported("has the step ", step, " and bounds that depend on a run");
  }
  if (axes.size() == 1 && count == 1 && CurrentBlock().parent() != nullptr) {
    // An iteration can't choose how many elements there are, but which ones.
    const ShiftedNumber start = node.Shifted(1);
    const ShiftedNumber end = node.Shifted(2);
    const int64_t extent = end.by - start.by;
    if (start.base == end.base && extent > 0 && extent <= kMostConstant) {
      const Variable first = layers::Cast(node.In(1), DType::kInt64);
      return node.Out(0, layers::Gather(x, first + layers::Range(0, extent), axes[0]));
    }
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
    const auto partly = node.KnownDims(0);
    if (!partly || x.dims().size() != 1 || bounds.axes.size() != 1) return;
    const auto count = static_cast<int64_t>(partly->size());
    const auto [begin, end] = SlicedPart(bounds.starts[0], bounds.ends[0], count);
    return node.OutKnownDims(0, Ints(partly->begin() + begin, partly->begin() + end));
  }
  node.Out(0, layers::StridedSlice(x, {.axes = bounds.axes,
                                       .starts = bounds.starts,
                                       .ends = bounds.ends,
                                       .strides = bounds.steps}));
}

}  // namespace

std::vector<OnnxConverterEntry> SliceConverters() {
  return {
      {"Slice", Slice},
  };
}

}  // namespace skiff
