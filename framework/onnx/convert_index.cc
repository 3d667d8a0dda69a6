// Ops that pick elements by indices.
#include <algorithm>
#include <limits>
#include <utility>

#include "framework/builder/control.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// More than any op of Skiff takes.
constexpr size_t kMostAxes = 64;

bool AreFromFront(const OnnxNode& node, size_t i) {
  const auto known = node.KnownInts(i);
  return known && std::ranges::none_of(*known, [](int64_t index) { return index < 0; });
}

// Returns rows of a table by ids of any rank, which a run checks.
Variable Looked(const OnnxNode& node, const Variable& table, const Variable& ids) {
  const Variable wide = ids.dtype() == DType::kInt64 ? ids : layers::Cast(ids, DType::kInt64);
  Op op("lookup_table_v2");
  op.SetInput("W", {table.name()}).SetInput("Ids", {wide.name()});
  return node.Emit(std::move(op));
}

// What is known of the dims that a node picks from a vector of dims.
std::optional<Ints> PickedDims(const OnnxNode& node) {
  const auto dims = node.KnownDims(0);
  const auto places = node.KnownInts(1);
  if (!dims || !places) return std::nullopt;
  const auto count = static_cast<int64_t>(dims->size());
  Ints picked;
  for (const int64_t place : *places) {
    if (place < -count || place >= count) return std::nullopt;  // the run says so
    picked.push_back((*dims)[static_cast<size_t>(place < 0 ? place + count : place)]);
  }
  return picked;
}

void Gather(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  Variable index = node.In(1);
  const int64_t axis = node.Axis(node.Int("axis", 0), x.dims().size());
  const bool is_float = x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64;
  const int64_t rank = RankOf(index);
  if (x.var().is_parameter && is_float && RankOf(x) == 2 && axis == 0 && rank > 0 &&
      node.Known(1) == nullptr) {
    // As an embedding. An id below 0 is an Error of the run.
    return node.Out(0, Looked(node, x, index));
  }
  if (rank <= 1 && RankOf(x) == 1) node.OutKnownDims(0, PickedDims(node));
  if (!AreFromFront(node, 1)) index = IndicesFromFront(index, x, axis);
  if (rank <= 1) return node.Out(0, layers::Gather(x, index, axis));
  const Variable flat = layers::Gather(x, layers::Reshape(index, {-1}), axis);
  Ints dims(x.dims().begin(), x.dims().begin() + axis);
  dims.insert(dims.end(), index.dims().begin(), index.dims().end());
  dims.insert(dims.end(), x.dims().begin() + axis + 1, x.dims().end());
  if (CanReshape(dims)) return node.Out(0, layers::Reshape(flat, dims));
  std::vector<Variable> parts;
  if (axis > 0) parts.push_back(DimsOf(x, 0, axis));
  parts.push_back(DimsOf(index, 0, rank));
  if (axis + 1 < RankOf(x)) parts.push_back(DimsOf(x, axis + 1, RankOf(x)));
  node.Out(0, ReshapedToParts(flat, parts));
}

void GatherElements(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", 0), x.dims().size());
  Variable index = node.In(1);
  if (!AreFromFront(node, 1)) index = IndicesFromFront(index, x, axis);
  node.Out(0, layers::TakeAlongAxis(x, index, axis));
}

// Tuples of indices with those below 0 counted from the end.
Variable TuplesFromFront(const OnnxNode& node, size_t i, const Variable& x) {
  Variable index = node.InOfRank(i, 1, kMostAxes);
  if (index.dtype() != DType::kInt64) index = layers::Cast(index, DType::kInt64);
  if (AreFromFront(node, i)) return index;
  const int64_t count = index.dims().back();
  if (count < 1 || count > RankOf(x))
    node.Unsupported("its tuples of indices have ", count, " entries");
  const Variable zero = layers::FullLike(index, 0.0);
  return layers::Where(index < zero, index + DimsOf(x, 0, count), index);
}

void GatherNd(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  if (node.Int("batch_dims", 0) != 0) node.Unsupported("has batch_dims");
  const Variable x = node.In(0);
  node.Out(0, layers::GatherNd(x, TuplesFromFront(node, 1, x)));
}

void ScatterElements(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  const Variable x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", 0), x.dims().size());
  const std::string reduction = node.String("reduction", "none");
  if (reduction != "none" && reduction != "add" && reduction != "mul") {
    node.Unsupported("reduction = \"", reduction, "\"");
  }
  const Variable index = IndicesFromFront(node.In(1), x, axis);
  node.Out(0, layers::PutAlongAxis(x, index, node.In(2), axis,
                                   reduction == "none" ? "assign" : reduction));
}

void ScatterNd(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  const Variable x = node.In(0);
  const std::string reduction = node.String("reduction", "none");
  const Variable index = TuplesFromFront(node, 1, x);
  if (reduction == "add") return node.Out(0, layers::ScatterNdAdd(x, index, node.In(2)));
  if (reduction != "none") node.Unsupported("reduction = \"", reduction, "\"");
  const int64_t count = index.dims().back();
  const bool known = std::ranges::none_of(x.dims(), [](int64_t dim) { return dim <= 0; });
  if (!known || count < 1 || count > RankOf(x)) node.Unsupported("its extents depend on a run");
  // The tuples as places in the axes that they index, laid out as one.
  Ints strides(static_cast<size_t>(count), 1);
  int64_t rows = 1;
  for (int64_t i = count - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = rows;
    rows *= x.dims()[static_cast<size_t>(i)];
  }
  const Variable places = layers::Reshape(
      layers::ReduceSum(index * layers::AssignValue({count}, strides), {.dims = {-1}}), {-1});
  int64_t width = 1;
  for (int64_t i = count; i < RankOf(x); ++i) width *= x.dims()[static_cast<size_t>(i)];
  const Variable updates = layers::Reshape(node.In(2), {-1, width});
  const Variable flat = layers::Reshape(x, {rows, width});
  node.Out(0, layers::Reshape(layers::Scatter(flat, places, updates), x.dims()));
}

void OneHot(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  const int64_t depth = node.WholeNumber(1, 0);
  Variable index = node.In(0);
  const Variable values = node.In(2);
  if (depth < 1 || depth > std::numeric_limits<int32_t>::max()) node.Invalid("depth = ", depth);
  if (index.dtype() != DType::kInt64) index = layers::Cast(index, DType::kInt64);
  const Variable zero = layers::FullLike(index, 0.0);
  index = layers::Where(index < zero, index + static_cast<double>(depth), index);
  Op op("one_hot_v2");
  op.SetInput("X", {index.name()});
  op.SetAttr("depth", depth).SetAttr("allow_out_of_range", true);
  Variable hot = layers::Cast(node.Emit(std::move(op)), DType::kBool);
  const int64_t rank = RankOf(hot);
  const int64_t axis = node.Axis(node.Int("axis", -1), hot.dims().size());
  if (axis + 1 < rank) {
    Ints permutation;
    for (int64_t i = 0; i + 1 < rank; ++i) permutation.push_back(i);
    permutation.insert(permutation.begin() + axis, rank - 1);
    hot = layers::Transpose(hot, permutation);
  }
  const auto value = [&](int64_t i) {
    return layers::Slice(values, {.axes = {0}, .starts = {i}, .ends = {i + 1}});
  };
  node.Out(0, layers::Where(hot, value(1), value(0)));
}

template <bool IsMax>
void ArgExtreme(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  Variable x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", 0), x.dims().size());
  const bool last = node.Int("select_last_index", 0) != 0;
  if (last) x = layers::Flip(x, {axis});
  const layers::ArgExtremeOptions options = {.axis = axis,
                                             .keep_dim = node.Int("keepdims", 1) != 0};
  const Variable place = IsMax ? layers::ArgMax(x, options) : layers::ArgMin(x, options);
  if (!last) return node.Out(0, place);
  const int64_t extent = x.dims()[static_cast<size_t>(axis)];
  if (extent < 0) node.Unsupported("selects the last index of an axis of unknown extent");
  node.Out(0, static_cast<double>(extent - 1) - place);
}

void TopK(const OnnxNode& node) {
  const Variable x = node.In(0);
  Op op("top_k_v2");
  op.SetInput("X", {x.name()});
  if (node.opset() < 10) {
    op.SetAttr("k", static_cast<int32_t>(node.Int("k", 0)));
  } else if (const auto k = node.KnownInts(1)) {
    if (k->size() != 1) node.Invalid("has ", k->size(), " numbers for k");
    op.SetAttr("k", k->front());
  } else {
    op.SetInput("K", {node.In(1).name()});
  }
  op.SetAttr("axis", static_cast<int32_t>(node.Axis(node.Int("axis", -1), x.dims().size())));
  op.SetAttr("largest", node.Int("largest", 1) != 0);
  const LayerCall layer("top_k_v2", "", std::source_location::current());
  const Variable values = layer.NewOutput();
  const Variable indices = layer.NewOutput();
  op.SetOutput("Out", {values.name()}).SetOutput("Indices", {indices.name()});
  layer.Append(std::move(op));
  node.Out(0, values);
  node.Out(1, indices);
}

void NonZero(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  node.Out(0, layers::Transpose(layers::WhereIndex(node.In(0)), {1, 0}));
}

void Unique(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  Variable x = node.In(0);
  Ints axes;
  if (node.HasAttr("axis")) {
    axes.push_back(node.Axis(node.Int("axis", 0), x.dims().size()));
  } else {
    x = layers::Reshape(x, {-1});
  }
  const bool is_sorted = node.Int("sorted", 1) != 0;
  if (!is_sorted && !axes.empty() && x.dims().size() > 1) {
    node.Unsupported("compares slices without sorting them");
  }
  const LayerCall layer("unique", "", std::source_location::current());
  const std::vector<Variable> made = {layer.NewOutput(), layer.NewOutput(), layer.NewOutput(),
                                      layer.NewOutput()};
  Op op("unique");
  op.SetInput("X", {x.name()});
  op.SetOutput("Out", {made[0].name()}).SetOutput("Indices", {made[1].name()});
  op.SetOutput("Index", {made[2].name()}).SetOutput("Counts", {made[3].name()});
  if (is_sorted) op.SetAttr("axis", axes);
  op.SetAttr("is_sorted", is_sorted).SetAttr("dtype", static_cast<int32_t>(DType::kInt64));
  op.SetAttr("return_index", true).SetAttr("return_inverse", true).SetAttr("return_counts", true);
  layer.Append(std::move(op));
  for (size_t i = 0; i < made.size(); ++i) node.Out(i, made[i]);
}

void Compress(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  Variable x = node.In(0);
  int64_t axis = 0;
  if (node.HasAttr("axis")) {
    axis = node.Axis(node.Int("axis", 0), x.dims().size());
  } else {
    x = layers::Reshape(x, {-1});
  }
  const auto taken = node.KnownInts(1);
  if (!taken) {
    const Variable places = layers::Reshape(layers::WhereIndex(node.In(1)), {-1});
    return node.Out(0, layers::Gather(x, places, axis));
  }
  Ints places;
  for (size_t i = 0; i < taken->size(); ++i) {
    if ((*taken)[i] != 0) places.push_back(static_cast<int64_t>(i));
  }
  if (places.empty()) node.Unsupported("takes no elements");
  const auto count = static_cast<int64_t>(places.size());
  node.Out(0, layers::Gather(x, layers::AssignValue({count}, places), axis));
}

// Takes each step of the first `length` of a sequence from the other end. A run refuses a length
// above the number of steps.
void ReverseSequence(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  Variable x = node.In(0);
  const int64_t batch_axis = node.Int("batch_axis", 1);
  const int64_t time_axis = node.Int("time_axis", 0);
  if (batch_axis + time_axis != 1 || batch_axis * time_axis != 0) {
    node.Invalid("batch_axis = ", batch_axis, " and time_axis = ", time_axis,
                 ", expected 0 and 1 in either order");
  }
  const size_t rank = x.dims().size();
  if (rank < 2) node.Invalid("its input is of rank ", rank, ", expected at least 2");
  Ints swapped;
  for (size_t i = 0; i < rank; ++i) swapped.push_back(static_cast<int64_t>(i));
  std::swap(swapped[0], swapped[1]);
  if (time_axis == 0) x = layers::Transpose(x, swapped);
  const int64_t steps = x.dims()[1];
  if (steps < 1) node.Unsupported("reverses steps of which only a run knows the number");
  int64_t columns = 1;
  for (size_t i = 2; i < rank; ++i) {
    if (x.dims()[i] < 1) node.Unsupported("reverses steps whose extents only a run knows");
    columns *= x.dims()[i];
  }
  Ints numbers;
  for (int64_t step = 0; step < steps; ++step) numbers.push_back(step);
  const Variable step = layers::AssignValue({1, steps}, numbers);
  const Variable lengths = layers::Unsqueeze(layers::Cast(node.In(1), DType::kInt64), {1});
  const Variable from = layers::Where(step < lengths, lengths - step - 1.0, step);
  const Variable index = layers::Expand(layers::Unsqueeze(from, {2}), {-1, -1, columns});
  const Variable rows = layers::Reshape(x, {0, steps, columns});
  Ints dims = x.dims();
  dims[0] = 0;
  const Variable y = layers::Reshape(layers::TakeAlongAxis(rows, index, 1), dims);
  node.Out(0, time_axis == 0 ? layers::Transpose(y, swapped) : y);
}

}  // namespace

std::vector<OnnxConverterEntry> IndexConverters() {
  return {
      {"ArgMax", ArgExtreme<true>},
      {"ArgMin", ArgExtreme<false>},
      {"Compress", Compress},
      {"Gather", Gather},
      {"GatherElements", GatherElements},
      {"GatherND", GatherNd},
      {"NonZero", NonZero},
      {"OneHot", OneHot},
      {"ReverseSequence", ReverseSequence},
      {"Scatter", ScatterElements},
      {"ScatterElements", ScatterElements},
      {"ScatterND", ScatterNd},
      {"TopK", TopK},
      {"Unique", Unique},
  };
}

}  // namespace skiff
