// Ops that give a tensor another shape, or move whole parts of it.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

// XShape carries a shape to the gradient and holds no elements, so nothing of an evaluation reads
// it.
void Reshape(OpExport& op) {
  const std::string x = op.In("X");
  op.Set("Out", op.Node("Reshape", {x, op.IntsValue("shape")}));
}

void Transpose(OpExport& op) {
  std::vector<int64_t> axes = op.Ints("axis");
  for (int64_t& axis : axes) axis += axis < 0 ? op.Rank("X") : 0;
  op.Set("Out", Transposed(op, op.In("X"), axes));
}

void Squeeze(OpExport& op) {
  const Shape& x = op.ShapeOf("X");
  std::vector<int64_t> given = op.Ints("axes");
  const bool all = given.empty();
  for (int64_t& axis : given) axis += axis < 0 ? x.rank() : 0;
  std::vector<int64_t> axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!all && std::ranges::count(given, axis) == 0) continue;
    // Whether such an axis goes depends on its extent.
    if (x[axis] < 0) Refuse("the extent of axis ", axis, " of X is unknown");
    if (x[axis] == 1) axes.push_back(axis);
  }
  op.Set("Out", Squeezed(op, op.In("X"), axes));
}

void Unsqueeze(OpExport& op) {
  // Skiff inserts one axis after the other, ONNX all at once.
  std::vector<bool> is_new(static_cast<size_t>(op.Rank("X")), false);
  for (const int64_t given : op.Ints("axes")) {
    const int64_t axis = given < 0 ? given + static_cast<int64_t>(is_new.size()) + 1 : given;
    is_new.insert(is_new.begin() + axis, true);
  }
  std::vector<int64_t> axes;
  for (size_t i = 0; i < is_new.size(); ++i) {
    if (is_new[i]) axes.push_back(static_cast<int64_t>(i));
  }
  op.Set("Out", Unsqueezed(op, op.In("X"), axes));
}

void Flatten2(OpExport& op) {
  const int64_t axis = op.Axis("axis", op.Rank("X"));
  op.Set("Out", op.Node("Flatten", {op.In("X")}, {{"axis", axis}}));
}

void FlattenContiguousRange(OpExport& op) {
  const int64_t rank = op.Rank("X");
  const std::string x = op.In("X");
  const int64_t start = op.Axis("start_axis", rank);
  const int64_t stop = op.Axis("stop_axis", rank);
  const Shape& out = op.OutShape("Out");
  const bool is_empty = std::ranges::count(out, 0) > 0;
  if (out.is_known() && !is_empty) return op.Set("Out", Reshaped(op, x, out.ToVector()));
  const std::string dims =
      Joined(op, {DimsOf(op, x, 0, start), op.IntVector({-1}), DimsOf(op, x, stop + 1, rank)});
  op.Set("Out", op.Node("Reshape", {x, dims}));
}

void Concat(OpExport& op) {
  const int64_t axis = op.Axis("axis", op.Rank("X"));
  op.Set("Out", op.Node("Concat", op.Ins("X"), {{"axis", axis}}));
}

void Stack(OpExport& op) {
  const int64_t axis = op.Axis("axis", op.Rank("X") + 1);
  std::vector<std::string> parts;
  for (const std::string& x : op.Ins("X")) parts.push_back(Unsqueezed(op, x, {axis}));
  op.Set("Y", op.Node("Concat", parts, {{"axis", axis}}));
}

std::vector<std::string> SplitInto(OpExport& op, const std::string& x, int64_t axis,
                                   const std::vector<int64_t>& extents) {
  return op.Nodes("Split", {x, op.IntVector(extents)}, {{"axis", axis}}, extents.size());
}

void Split(OpExport& op) {
  const Shape& x = op.ShapeOf("X");
  const int64_t axis = op.Axis("axis", x.rank());
  std::vector<int64_t> extents = op.Ints("sections");
  const int64_t num = op.Int("num");
  const int64_t whole = x[static_cast<int>(axis)];
  const bool has_rest = extents.empty() || std::ranges::count(extents, -1) > 0;
  if (has_rest && whole < 0) Refuse("the extent of X along the axis is unknown");
  if (extents.empty()) extents.assign(static_cast<size_t>(num), whole / std::max(num, int64_t{1}));
  int64_t rest = whole;
  for (const int64_t extent : extents) rest -= std::max(extent, int64_t{0});
  std::ranges::replace(extents, int64_t{-1}, rest);
  const std::vector<std::string> parts = SplitInto(op, op.In("X"), axis, extents);
  for (size_t i = 0; i < parts.size(); ++i) op.Set("Out", parts[i], i);
}

void Unstack(OpExport& op) {
  const int64_t axis = op.Axis("axis", op.Rank("X"));
  op.Ignore("num");
  const std::vector<int64_t> extents(op.OutputCount("Y"), 1);
  const std::vector<std::string> parts = SplitInto(op, op.In("X"), axis, extents);
  for (size_t i = 0; i < parts.size(); ++i) op.Set("Y", Squeezed(op, parts[i], {axis}), i);
}

// Adds dims of 1 in front.
std::string WithRank(OpExport& op, const std::string& value, int64_t rank, int64_t wanted) {
  std::vector<int64_t> axes;
  for (int64_t i = rank; i < wanted; ++i) axes.push_back(i - rank);
  return Unsqueezed(op, value, axes);
}

void Expand(OpExport& op) {
  const std::string x = op.In("X");
  op.Set("Out", op.Node("Tile", {x, op.IntsValue("expand_times")}));
}

void ExpandV2(OpExport& op) {
  const std::string x = op.In("X");
  std::string shape;
  if (op.IsGiven("shape")) {
    // A dim of -1, which keeps that of X, is a 1 for ONNX.
    const std::string given = op.IntsValue("shape");
    shape = op.Node("Abs", {given});
  } else {
    std::vector<int64_t> dims = op.Ints("shape");
    std::ranges::replace(dims, int64_t{-1}, int64_t{1});
    shape = op.IntVector(dims);
  }
  op.Set("Out", op.Node("Expand", {x, shape}));
}

void ExpandAsV2(OpExport& op) {
  const std::vector<int64_t> target = op.Ints("target_shape");
  const std::string x = op.In("X");
  const std::string shape = op.Has("Y") ? op.Node("Shape", {op.In("Y")}) : op.IntVector(target);
  op.Set("Out", op.Node("Expand", {x, shape}));
}

void Tile(OpExport& op) {
  if (op.IsGiven("repeat_times")) Refuse("the repeats are a tensor, expected an attribute");
  std::vector<int64_t> times = op.Ints("repeat_times");
  const int64_t rank = op.Rank("X");
  const auto wanted = std::max(rank, static_cast<int64_t>(times.size()));
  times.insert(times.begin(), static_cast<size_t>(wanted) - times.size(), 1);
  const std::string x = WithRank(op, op.In("X"), rank, wanted);
  op.Set("Out", op.Node("Tile", {x, op.IntVector(times)}));
}

void PixelShuffle(OpExport& op) {
  const int64_t factor = op.Int("upscale_factor");
  const bool is_last = op.Text("data_format") == "NHWC";
  std::string x = op.In("X");
  if (is_last) x = Transposed(op, x, ChannelsFirst(4));
  x = op.Node("DepthToSpace", {x}, {{"blocksize", factor}, {"mode", std::string("CRD")}});
  op.Set("Out", is_last ? Transposed(op, x, ChannelsLast(4)) : x);
}

void Meshgrid(OpExport& op) {
  const auto rank = static_cast<int64_t>(op.InputCount("X"));
  std::vector<std::string> extents;
  for (const std::string& x : op.Ins("X")) {
    extents.push_back(op.Node("Shape", {Reshaped(op, x, {-1})}));
  }
  const std::string dims = Joined(op, extents);
  for (int64_t k = 0; k < rank; ++k) {
    std::vector<int64_t> own(static_cast<size_t>(rank), 1);
    own[static_cast<size_t>(k)] = -1;
    const std::string x = Reshaped(op, op.In("X", static_cast<size_t>(k)), own);
    op.Set("Out", op.Node("Expand", {x, dims}), static_cast<size_t>(k));
  }
}

void ShapeOp(OpExport& op) {
  op.Set("Out", op.Cast(op.Node("Shape", {op.In("Input")}), DType::kInt32));
}

void Size(OpExport& op) { op.Set("Out", op.Node("Size", {op.In("Input")})); }

void IsEmpty(OpExport& op) {
  const std::string size = op.Node("Size", {op.In("X")});
  op.Set("Out", Reshaped(op, op.Node("Equal", {size, op.Number(DType::kInt64, 0)}), {1}));
}

}  // namespace

void AddShapeExporters(ExporterTable* table) {
  table->AddMover("reshape2", Reshape);
  table->AddMover("transpose2", Transpose);
  table->AddMover("squeeze2", Squeeze);
  table->AddMover("unsqueeze2", Unsqueeze);
  table->AddMover("flatten2", Flatten2);
  table->AddMover("flatten_contiguous_range", FlattenContiguousRange);
  table->AddMover("concat", Concat);
  table->AddMover("stack", Stack);
  table->AddMover("split", Split);
  table->AddMover("unstack", Unstack);
  table->AddMover("expand", Expand);
  table->AddMover("expand_v2", ExpandV2);
  table->AddMover("expand_as_v2", ExpandAsV2);
  table->AddMover("tile", Tile);
  table->AddMover("pixel_shuffle", PixelShuffle);
  table->AddMover("meshgrid", Meshgrid);
  table->AddMover("shape", ShapeOp);
  table->AddMover("size", Size);
  table->AddMover("is_empty", IsEmpty);
}

}  // namespace skiff::onnx_export
