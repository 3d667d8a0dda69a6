// Ops that take parts of a tensor, or put borders around it.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
// Beyond the first element, for negative steps.
constexpr int64_t kToTheFront = std::numeric_limits<int64_t>::min();

std::string WithoutAxes(OpExport& op, const std::string& value, int64_t rank) {
  std::vector<int64_t> axes = op.Ints("decrease_axis");
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::ranges::sort(axes);
  const auto [first, last] = std::ranges::unique(axes);
  axes.erase(first, last);
  return Squeezed(op, value, axes);
}

void Slice(OpExport& op) {
  const std::string x = op.In("Input");
  const std::string starts = op.IntsValue("starts");
  const std::string ends = op.IntsValue("ends");
  const std::vector<int64_t> axes = op.Ints("axes");
  const std::string part =
      axes.empty() ? x : op.Node("Slice", {x, starts, ends, op.IntVector(axes)});
  op.Set("Out", WithoutAxes(op, part, op.Rank("Input")));
}

// Returns the end of a walk as ONNX has it: in Skiff, an end of -1 is before the first element if
// the stride is negative, and others count from the back.
int64_t EndFor(int64_t end, int64_t stride, int64_t extent) {
  if (stride > 0) return end < 0 && end + extent < 0 && extent >= 0 ? 0 : end;
  if (end == -1) return kToTheFront;
  if (end < 0 && extent < 0) Refuse("an end from the back, a negative stride, an unknown extent");
  // From the back, but not before the first element.
  return end < 0 ? std::max(end + extent, int64_t{0}) : end;
}

void StridedSlice(OpExport& op) {
  const Shape& shape = op.ShapeOf("Input");
  const std::vector<int64_t> axes = op.Ints("axes");
  std::vector<int64_t> starts = op.Ints("starts");
  std::vector<int64_t> ends = op.Ints("ends");
  const std::vector<int64_t> strides = op.Ints("strides");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + shape.rank() : axes[i];
    const int64_t extent = shape[static_cast<int>(axis)];
    ends[i] = EndFor(ends[i], strides[i], extent);
    // A walk down begins at the first element if its start is before it.
    if (strides[i] < 0 && starts[i] < 0) {
      if (extent < 0) Refuse("a start from the back, a negative stride, an unknown extent");
      starts[i] = std::max(starts[i] + extent, int64_t{0});
    }
    // In Skiff, a walk down from beyond the end begins at the last element whatever the stride, as
    // in ONNX.
  }
  const std::string x = op.In("Input");
  const std::string part = axes.empty()
                               ? x
                               : op.Node("Slice", {x, op.IntVector(starts), op.IntVector(ends),
                                                   op.IntVector(axes), op.IntVector(strides)});
  op.Set("Out", WithoutAxes(op, part, shape.rank()));
}

void Flip(OpExport& op) {
  const Shape& shape = op.ShapeOf("X");
  std::vector<int64_t> axes;
  for (const int64_t given : op.Ints("axis")) {
    const int64_t axis = given < 0 ? given + shape.rank() : given;
    const bool is_new = std::ranges::count(axes, axis) == 0;
    if (is_new && shape[static_cast<int>(axis)] != 0) axes.push_back(axis);
  }
  const std::string x = op.In("X");
  if (axes.empty()) return op.Set("Out", x);
  const std::vector<int64_t> starts(axes.size(), -1);
  const std::vector<int64_t> ends(axes.size(), kToTheFront);
  const std::vector<int64_t> steps(axes.size(), -1);
  op.Set("Out", op.Node("Slice", {x, op.IntVector(starts), op.IntVector(ends), op.IntVector(axes),
                                  op.IntVector(steps)}));
}

std::string Rolled(OpExport& op, const std::string& x, int64_t axis, int64_t shift,
                   int64_t extent) {
  if (extent < 0) Refuse("the extent of axis ", axis, " of X is unknown");
  const int64_t first = extent == 0 ? 0 : ((-shift) % extent + extent) % extent;
  if (first == 0) return x;
  const auto part = [&](int64_t begin, int64_t end) {
    return op.Node("Slice", {x, op.IntVector({begin}), op.IntVector({end}), op.IntVector({axis})});
  };
  return Joined(op, {part(first, kToTheEnd), part(0, first)}, axis);
}

void Roll(OpExport& op) {
  const Shape& shape = op.ShapeOf("X");
  const std::vector<int64_t> shifts = op.Ints("shifts");
  const std::vector<int64_t> axes = op.Ints("axis");
  std::string x = op.In("X");
  if (axes.empty()) {
    if (!shape.is_known()) Refuse("the shape of X is unknown");
    x = Rolled(op, Reshaped(op, x, {-1}), 0, shifts.at(0), shape.element_count());
    return op.Set("Out", Reshaped(op, x, shape.ToVector()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + shape.rank() : axes[i];
    x = Rolled(op, x, axis, shifts.at(i), shape[static_cast<int>(axis)]);
  }
  op.Set("Out", x);
}

// ONNX has the borders before all axes, then those after all axes.
std::string Padded(OpExport& op, const std::string& x, const std::vector<int64_t>& before,
                   const std::vector<int64_t>& after, DType dtype, double value,
                   const std::string& mode) {
  std::vector<int64_t> pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  std::vector<std::string> inputs = {x, op.IntVector(pads)};
  if (mode == "constant") inputs.push_back(op.Number(dtype, value));
  return op.Node("Pad", inputs, {{"mode", mode}});
}

void Pad(OpExport& op) {
  const std::vector<int64_t> paddings = op.Ints("paddings");
  const auto value = static_cast<double>(op.Float("pad_value"));
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  for (size_t i = 0; i + 1 < paddings.size(); i += 2) {
    before.push_back(paddings[i]);
    after.push_back(paddings[i + 1]);
  }
  const std::string x = op.In("X");
  if (before.empty()) return op.Set("Out", x);
  op.Set("Out", Padded(op, x, before, after, op.DTypeOf("X"), value, "constant"));
}

void Pad2d(OpExport& op) {
  const std::vector<int64_t> paddings = op.Ints("paddings");
  const std::string mode = op.Text("mode");
  const auto value = static_cast<double>(op.Float("pad_value"));
  const bool is_last = op.Text("data_format") == "NHWC";
  std::vector<int64_t> before(4, 0);
  std::vector<int64_t> after(4, 0);
  const size_t height = is_last ? 1 : 2;
  before[height] = paddings.at(0);
  after[height] = paddings.at(1);
  before[height + 1] = paddings.at(2);
  after[height + 1] = paddings.at(3);
  op.Set("Out", Padded(op, op.In("X"), before, after, op.DTypeOf("X"), value, mode));
}

void TrilTriu(OpExport& op) {
  op.NeedOpset(14, "Trilu");
  const int64_t diagonal = op.Int("diagonal");
  const int64_t upper = op.Bool("lower") ? 0 : 1;
  op.Set("Out",
         op.Node("Trilu", {op.In("X"), op.Number(DType::kInt64, static_cast<double>(diagonal))},
                 {{"upper", upper}}));
}

}  // namespace

void AddSliceExporters(ExporterTable* table) {
  table->AddMover("slice", Slice);
  table->AddMover("strided_slice", StridedSlice);
  table->AddMover("flip", Flip);
  table->AddMover("roll", Roll);
  table->Add("pad", Pad);
  table->Add("pad2d", Pad2d);
  table->AddMover("tril_triu", TrilTriu);
}

}  // namespace skiff::onnx_export
