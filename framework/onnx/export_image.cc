// Ops that resize and sample images, and ops on their columns.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/image_exports.h"

namespace skiff::onnx_export {
namespace {

struct Resizing {
  std::vector<int64_t> inputs;  // height and width
  std::vector<int64_t> outputs;
  // Of the attribute, 0: the ratio of the sizes.
  std::vector<double> scales = {0, 0};
  bool align_corners = true;
  bool by_centers = false;

  bool is_copy() const { return inputs == outputs; }
  // Returns the input pixels from one pixel of the output to the next along an axis.
  double RatioAlong(size_t axis) const {
    if (is_copy()) return 1;
    if (outputs[axis] <= 1) return 0;
    const auto in = static_cast<double>(inputs[axis]);
    const auto out = static_cast<double>(outputs[axis]);
    if (align_corners) return (in - 1) / (out - 1);
    return scales[axis] > 0 ? 1 / scales[axis] : in / out;
  }
};

bool HasVersion2(const OpExport& op) { return op.op().type.ends_with("_v2"); }

// Returns the scales that count: with out_size, none do, and in version 1 they only give the size.
std::vector<double> ScalesOf(OpExport& op, bool has_size) {
  if (!HasVersion2(op)) {
    op.Ignore("scale");
    return {0, 0};
  }
  const auto& scale = std::get<std::vector<float>>(op.Attr("scale"));
  if (has_size || scale.empty()) return {0, 0};
  return {static_cast<double>(scale.front()), static_cast<double>(scale.back())};
}

Resizing ResizingOf(OpExport& op, bool is_last) {
  for (const char* name : {"out_d", "out_h", "out_w", "interp_method"}) op.Ignore(name);
  if (op.IsGiven("out_size") || op.IsGiven("scale")) Refuse("the size is a tensor");
  Resizing resizing;
  resizing.align_corners = op.Bool("align_corners");
  resizing.by_centers = op.Int("align_mode") == 0 && !resizing.align_corners;
  resizing.inputs = ExtentsOf(op.ShapeOf("X"), is_last);
  resizing.outputs = ExtentsOf(op.OutShape("Out"), is_last);
  resizing.scales = ScalesOf(op, !op.Ints("out_size").empty());
  for (const int64_t extent : resizing.inputs) {
    if (extent <= 0) Refuse("the size of the images is unknown");
  }
  return resizing;
}

// Returns the pixel that is the nearest one of each along an axis, as Skiff rounds it.
std::vector<int64_t> NearestAlong(const Resizing& resizing, size_t axis) {
  std::vector<int64_t> places;
  const auto ratio = static_cast<float>(resizing.RatioAlong(axis));
  for (int64_t pixel = 0; pixel < resizing.outputs[axis]; ++pixel) {
    const float position = ratio * static_cast<float>(pixel);
    const double rounding = resizing.align_corners ? 0.5 : 0.0;
    const auto place = static_cast<int64_t>(static_cast<double>(position) + rounding);
    places.push_back(std::min(place, resizing.inputs[axis] - 1));
  }
  return places;
}

// Returns whether each pixel becomes a square of `factor`, which every runtime computes alike.
bool IsRepetition(const std::vector<int64_t>& places, int64_t inputs) {
  const auto outputs = static_cast<int64_t>(places.size());
  if (outputs % inputs != 0) return false;
  for (int64_t i = 0; i < outputs; ++i) {
    if (places[static_cast<size_t>(i)] != i / (outputs / inputs)) return false;
  }
  return true;
}

// The dims of the images resized: batch and channels stay.
std::string SizesFor(OpExport& op, const std::string& x, const Resizing& resizing) {
  return Joined(op, {DimsOf(op, x, 0, 2), op.IntVector(resizing.outputs)});
}

std::string Nearest(OpExport& op, const std::string& x, const Resizing& resizing) {
  const std::vector<int64_t> rows = NearestAlong(resizing, 0);
  const std::vector<int64_t> columns = NearestAlong(resizing, 1);
  if (IsRepetition(rows, resizing.inputs[0]) && IsRepetition(columns, resizing.inputs[1])) {
    return op.Node("Resize", {x, "", "", SizesFor(op, x, resizing)},
                   {{"mode", std::string("nearest")},
                    {"coordinate_transformation_mode", std::string("asymmetric")},
                    {"nearest_mode", std::string("floor")}});
  }
  // Runtimes round the positions of other sizes differently, so the pixels are named.
  const std::string row_part = op.Node("Gather", {x, op.IntVector(rows)}, {{"axis", int64_t{2}}});
  return op.Node("Gather", {row_part, op.IntVector(columns)}, {{"axis", int64_t{3}}});
}

std::string Bilinear(OpExport& op, const std::string& x, const Resizing& resizing) {
  if (resizing.is_copy()) return x;
  const bool is_scaled = !resizing.align_corners && resizing.scales[0] > 0;
  const std::string positions = resizing.align_corners ? "align_corners"
                                : resizing.by_centers  ? "half_pixel"
                                                       : "asymmetric";
  // An output of one pixel has ratio 0 in Skiff, and with half_pixel not in ONNX.
  for (size_t axis = 0; axis < 2; ++axis) {
    if (resizing.by_centers && resizing.outputs[axis] == 1 && resizing.inputs[axis] > 1) {
      Refuse("an output of one pixel with align_mode = 0");
    }
  }
  const NodeAttrs attrs = {{"mode", std::string("linear")},
                           {"coordinate_transformation_mode", positions}};
  if (!is_scaled) {
    return op.Node("Resize", {x, "", "", SizesFor(op, x, resizing)}, attrs);
  }
  const std::vector<float> scales = {1, 1, static_cast<float>(resizing.scales[0]),
                                     static_cast<float>(resizing.scales[1])};
  return op.Node("Resize", {x, "", op.Constant(Tensor::FromValues(Shape{4}, scales))}, attrs);
}

void Resize(OpExport& op, bool is_nearest) {
  const bool is_last = op.Text("data_layout") == "NHWC";
  const Resizing resizing = ResizingOf(op, is_last);
  std::string x = op.In("X");
  if (is_last) x = Transposed(op, x, ChannelsFirst(4));
  const std::string y = is_nearest ? Nearest(op, x, resizing) : Bilinear(op, x, resizing);
  op.Set("Out", is_last ? Transposed(op, y, ChannelsLast(4)) : y);
}

void NearestInterp(OpExport& op) { Resize(op, true); }
void BilinearInterp(OpExport& op) { Resize(op, false); }

void GridSampler(OpExport& op) {
  const bool is_volume = op.Rank("X") == 5;
  op.NeedOpset(is_volume ? 20 : 16, is_volume ? "GridSample of volumes" : "GridSample");
  std::string mode = op.Text("mode");
  if (op.opset() >= 20 && mode != "nearest") mode = mode == "bilinear" ? "linear" : "cubic";
  op.Set("Output", op.Node("GridSample", {op.In("X"), op.In("Grid")},
                           {{"mode", mode},
                            {"padding_mode", op.Text("padding_mode")},
                            {"align_corners", int64_t{op.Bool("align_corners") ? 1 : 0}}}));
}

// A place before the map along an axis: see affine_grid.
double BaseCoordinate(bool align_corners, int64_t i, int64_t size) {
  const auto place = static_cast<double>(i);
  const auto count = static_cast<double>(size);
  if (!align_corners) return (2 * place + 1) / count - 1;
  return size == 1 ? 0 : 2 * place / (count - 1) - 1;
}

// The places before the map along an axis of the grid [extents…, 1].
std::string BaseCoordinates(OpExport& op, bool align_corners, const std::vector<int64_t>& extents,
                            size_t axis) {
  const int64_t size = extents[axis];
  std::vector<double> places;
  for (int64_t i = 0; i < size; ++i) places.push_back(BaseCoordinate(align_corners, i, size));
  Shape shape;
  for (size_t k = 0; k <= extents.size(); ++k) shape.Append(k == axis ? size : 1);
  return op.Cast(op.Constant(Tensor::FromValues(shape, places)), op.DTypeOf("Theta"));
}

// Theta times all places. These are made of a vector for each axis, or a file would be as large as
// the grid. ONNX's AffineGrid is newer than most opsets.
void AffineGrid(OpExport& op) {
  if (op.IsGiven("output_shape")) Refuse("the size is a tensor");
  const bool align_corners = op.Bool("align_corners");
  op.Ignore("output_shape");
  const Shape& out = op.OutShape("Output");
  const std::vector<int64_t> extents(out.begin() + 1, out.end() - 1);
  const auto axes = static_cast<int64_t>(extents.size());
  std::vector<int64_t> column = extents;
  column.push_back(1);
  std::vector<std::string> columns;
  for (size_t axis = extents.size(); axis > 0; --axis) {
    columns.push_back(BaseCoordinates(op, align_corners, extents, axis - 1));
  }
  columns.push_back(op.Number(op.DTypeOf("Theta"), 1));
  for (std::string& places : columns) {
    places = op.Node("Expand", {places, op.IntVector(column)});
  }
  const std::string base = op.Node("Flatten", {Joined(op, columns, axes)}, {{"axis", axes}});
  const std::string theta = op.In("Theta");
  const std::string products = op.Node("MatMul", {base, Transposed(op, theta, {0, 2, 1})});
  std::vector<int64_t> dims = extents;
  dims.push_back(axes);
  op.Set("Output",
         op.Node("Reshape", {products, Joined(op, {DimsOf(op, theta, 0, 1), op.IntVector(dims)})}));
}

struct UnfoldedAxis {
  int64_t taps = 0;
  int64_t stride = 0;
  int64_t dilation = 0;
  int64_t windows = 0;
};

// Which row (or column) of the padded image each tap sees in each window: [taps, windows].
std::string SeenAlong(OpExport& op, const UnfoldedAxis& axis) {
  std::vector<int64_t> places;
  for (int64_t tap = 0; tap < axis.taps; ++tap) {
    for (int64_t window = 0; window < axis.windows; ++window) {
      places.push_back(window * axis.stride + tap * axis.dilation);
    }
  }
  return op.Constant(Tensor::FromValues(Shape{axis.taps, axis.windows}, places));
}

// Picks rows and columns of the padded images.
void Unfold(OpExport& op) {
  const Shape& shape = op.ShapeOf("X");
  const std::vector<int64_t> kernel = op.Ints("kernel_sizes");
  const std::vector<int64_t> strides = op.Ints("strides");
  const std::vector<int64_t> dilations = op.Ints("dilations");
  const std::vector<int64_t> p = op.Ints("paddings");
  UnfoldedAxis axes[2];
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = shape[static_cast<int>(i) + 2];
    if (extent < 0) Refuse("the size of the images is unknown");
    axes[i] = {.taps = kernel[i], .stride = strides[i], .dilation = dilations[i]};
    const int64_t room = extent + p[i] + p[i + 2] - (kernel[i] - 1) * dilations[i] - 1;
    axes[i].windows = room < 0 ? 0 : room / strides[i] + 1;
  }
  const std::string x = op.In("X");
  const std::string padded =
      op.Node("Pad", {x, op.IntVector({0, 0, p[0], p[1], 0, 0, p[2], p[3]})});
  const std::string rows =
      op.Node("Gather", {padded, SeenAlong(op, axes[0])}, {{"axis", int64_t{2}}});
  // [N, C, taps, windows, taps, windows]
  const std::string seen =
      op.Node("Gather", {rows, SeenAlong(op, axes[1])}, {{"axis", int64_t{4}}});
  const std::string sorted = Transposed(op, seen, {0, 1, 2, 4, 3, 5});
  // A reshape can't infer the rows of no images.
  const std::string taps = op.IntVector({axes[0].taps * axes[1].taps});
  const std::string rows_of_image = op.Node("Mul", {DimsOf(op, x, 1, 2), taps});
  const std::string windows = op.IntVector({axes[0].windows * axes[1].windows});
  op.Set("Y",
         op.Node("Reshape", {sorted, Joined(op, {DimsOf(op, x, 0, 1), rows_of_image, windows})}));
}

void Fold(OpExport& op) {
  op.NeedOpset(18, "Col2Im");
  const std::vector<int64_t> extents = op.Ints("output_sizes");
  const std::vector<int64_t> kernel = op.Ints("kernel_sizes");
  op.Set("Y", op.Node("Col2Im", {op.In("X"), op.IntVector(extents), op.IntVector(kernel)},
                      {{"strides", op.Ints("strides")},
                       {"dilations", op.Ints("dilations")},
                       {"pads", op.Ints("paddings")}}));
}

}  // namespace

void AddImageExporters(ExporterTable* table) {
  table->Add("grid_sampler", GridSampler);
  table->Add("affine_grid", AffineGrid);
  table->AddMover("unfold", Unfold);
  table->Add("fold", Fold);
  for (const char* type : {"nearest_interp", "nearest_interp_v2"}) {
    table->AddMover(type, NearestInterp);
  }
  for (const char* type : {"bilinear_interp", "bilinear_interp_v2"}) {
    table->Add(type, BilinearInterp);
  }
}

}  // namespace skiff::onnx_export
