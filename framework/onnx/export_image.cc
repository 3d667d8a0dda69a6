// Ops that resize images.
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

}  // namespace

void AddImageExporters(ExporterTable* table) {
  for (const char* type : {"nearest_interp", "nearest_interp_v2"}) {
    table->AddMover(type, NearestInterp);
  }
  for (const char* type : {"bilinear_interp", "bilinear_interp_v2"}) {
    table->Add(type, BilinearInterp);
  }
}

}  // namespace skiff::onnx_export
