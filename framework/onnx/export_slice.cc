// Ops that take parts of a tensor, or put borders around it.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
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
// the stride is negative, and others count from the back. Those of set_value may then be before it,
// as ONNX's may.
int64_t EndFor(int64_t end, int64_t stride, int64_t extent, bool may_be_before) {
  if (stride > 0) return end < 0 && end + extent < 0 && extent >= 0 ? 0 : end;
  if (end == -1) return kToTheFront;
  if (may_be_before) return end;
  if (end < 0 && extent < 0) Refuse("an end from the back, a negative stride, an unknown extent");
  // From the back, but not before the first element.
  return end < 0 ? std::max(end + extent, int64_t{0}) : end;
}

// Returns the elements of x, which has the shape of Input, that a strided slice of Input takes.
std::string Strided(OpExport& op, const std::string& x, std::string_view strides_attr) {
  const Shape& shape = op.ShapeOf("Input");
  const std::vector<int64_t> axes = op.Ints("axes");
  std::vector<int64_t> starts = op.Ints("starts");
  std::vector<int64_t> ends = op.Ints("ends");
  const std::vector<int64_t> strides = op.Ints(strides_attr);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + shape.rank() : axes[i];
    const int64_t extent = shape[static_cast<int>(axis)];
    ends[i] = EndFor(ends[i], strides[i], extent, strides_attr == "steps");
    // A walk down begins at the first element if its start is before it.
    if (strides[i] < 0 && starts[i] < 0) {
      if (extent < 0) Refuse("a start from the back, a negative stride, an unknown extent");
      starts[i] = std::max(starts[i] + extent, int64_t{0});
    }
    // In Skiff, a walk down from beyond the end begins at the last element whatever the stride, as
    // in ONNX.
  }
  if (axes.empty()) return x;
  return op.Node("Slice", {x, op.IntVector(starts), op.IntVector(ends), op.IntVector(axes),
                           op.IntVector(strides)});
}

void StridedSlice(OpExport& op) {
  const std::string part = Strided(op, op.In("Input"), "strides");
  op.Set("Out", WithoutAxes(op, part, op.Rank("Input")));
}

// The dims of a value of set_value with one for each axis of Input: 1 for an axis that it lacks.
std::vector<int64_t> AlignedDims(OpExport& op, const std::vector<int64_t>& value) {
  const int64_t rank = op.Rank("Input");
  std::vector<int64_t> dropped = op.Ints("decrease_axes");
  for (int64_t& axis : dropped) axis += axis < 0 ? rank : 0;
  const std::vector<int64_t> inserted = op.Ints("none_axes");
  std::vector<int64_t> aligned(static_cast<size_t>(rank), 1);
  auto dim = value.rbegin();
  const auto skip = [&](auto count) {
    for (; count > 0 && dim != value.rend(); --count) ++dim;
  };
  skip(std::ranges::count_if(inserted, [&](int64_t axis) { return axis >= rank; }));
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    const bool is_there = std::ranges::count(dropped, axis) == 0 && dim != value.rend();
    if (is_there) aligned[static_cast<size_t>(axis)] = *dim++;
    skip(std::ranges::count(inserted, axis));
  }
  return aligned;
}

// Writes the value to the places, in Input as if it were flat, of the elements that a slice takes.
void SetValue(OpExport& op) {
  op.Ignore("dtype");
  const std::string input = op.In("Input");
  const auto values = std::get<std::vector<double>>(op.Attr("values"));
  std::vector<int64_t> dims = op.Ints("shape");
  std::string value;
  if (op.Has("ValueTensor")) {
    dims = op.ShapeOf("ValueTensor").ToVector();
    value = op.In("ValueTensor");
  } else {
    const Tensor constant = Tensor::FromValues<double>(Shape(dims), values);
    value = op.Cast(op.Constant(constant), op.DTypeOf("Input"));
  }
  const std::vector<int64_t> aligned = AlignedDims(op, dims);
  if (std::ranges::count(aligned, -1) > 1) Refuse("several dims of the value are unknown");
  if (aligned != dims) value = Reshaped(op, value, aligned);
  const auto number = [&](double n) { return op.Number(DType::kInt64, n); };
  const std::string shape = op.Node("Shape", {input});
  const std::string all = op.Node("Range", {number(0), op.Node("Size", {input}), number(1)});
  const std::string places = Strided(op, op.Node("Reshape", {all, shape}), "steps");
  const std::string repeated = op.Node("Expand", {value, op.Node("Shape", {places})});
  const auto flat = [&](const std::string& x) { return Reshaped(op, x, {-1}); };
  const std::string set = op.Node("ScatterElements", {flat(input), flat(places), flat(repeated)});
  op.Set("Out", op.Node("Reshape", {set, shape}));
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

// pad2d, whose numbers begin with the rows, and pad3d, whose numbers begin with the columns.
void PadImages(OpExport& op) {
  const std::vector<int64_t> paddings = op.Ints("paddings");
  const bool is_pad2d = op.Defines("pad_value");
  const auto value = static_cast<double>(op.Float(is_pad2d ? "pad_value" : "value"));
  std::string mode = op.Text("mode");
  if (mode == "replicate") mode = "edge";
  if (mode == "circular") {
    op.NeedOpset(19, "wrap");
    mode = "wrap";
  }
  const std::string format = op.Text("data_format");
  std::vector<int64_t> before(format.size(), 0);
  std::vector<int64_t> after(format.size(), 0);
  const size_t first = format.back() == 'C' ? 1 : 2;
  const size_t count = format.size() - 2;
  for (size_t k = 0; k < count; ++k) {
    const size_t from = 2 * (is_pad2d ? k : count - 1 - k);
    before[first + k] = paddings.at(from);
    after[first + k] = paddings.at(from + 1);
  }
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
  table->AddMover("set_value", SetValue);
  table->Add("pad", Pad);
  table->Add("pad2d", PadImages);
  table->Add("pad3d", PadImages);
  table->AddMover("tril_triu", TrilTriu);
}

}  // namespace skiff::onnx_export
