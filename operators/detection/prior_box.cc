// prior_box: the prior boxes of SSD around the cells of a feature map.
//
// The center of cell (i, j) is ((j + offset) · step_w, (i + offset) · step_h) in pixels of Image;
// if a step is 0, both are the image's extents divided by the map's. Of each minimum size m with
// the maximum size M of the same number, a cell has boxes of width and height
//
//   m · √r and m / √r for each ratio r,  √(m · M) and √(m · M)
//
// The ratios are 1 and then aspect_ratios, each with 1 / r if flip says so; a ratio that the list
// has already, to within 1e-6, isn't added again. With min_max_aspect_ratios_order, the box of M is
// the second one. Boxes are shares of the image's extents; clip moves them into [0, 1].
//
// Source: Fluid's prior_box (PaddlePaddle 2.6).
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "framework/op/registry.h"
#include "operators/detection/kernels/prior_boxes.h"

namespace skiff {
namespace {

constexpr double kSameRatio = 1e-6;

std::vector<double> RatiosOf(const OpContext& context) {
  std::vector<double> ratios = {1.0};
  for (const float ratio : context.Attr<std::vector<float>>("aspect_ratios")) {
    const bool is_known = std::ranges::any_of(
        ratios, [&](double other) { return std::fabs(double{ratio} - other) < kSameRatio; });
    if (is_known) continue;
    ratios.push_back(ratio);
    if (context.Attr<bool>("flip")) ratios.push_back(1 / double{ratio});
  }
  return ratios;
}

void CheckSizes(const std::vector<float>& least, const std::vector<float>& most) {
  SKIFF_ENFORCE(most.empty() || most.size() == least.size(), kInvalidArgument,
                "prior_box: max_sizes has ", most.size(),
                " numbers, expected as many as min_sizes, ", least.size(), ", or none");
  for (size_t i = 0; i < most.size(); ++i) {
    SKIFF_ENFORCE(most[i] > least[i], kInvalidArgument, "prior_box: max_sizes[", i, "] is ",
                  most[i], ", expected more than min_sizes[", i, "], ", least[i]);
  }
}

// Throws Error unless an input is images of at least one pixel.
void CheckImages(const OpContext& context, std::string_view slot) {
  const TensorMeta& images = context.Input(slot);
  SKIFF_ENFORCE(images.shape.rank() == 4, kInvalidArgument, "prior_box: ", slot, " of shape ",
                images.shape, ", expected [N, C, H, W]");
  SKIFF_ENFORCE(images.dtype == context.Input("Input").dtype, kInvalidArgument, "prior_box: ", slot,
                " is ", images.dtype, " and Input is ", context.Input("Input").dtype,
                ", expected one dtype");
}

void Infer(OpContext& context) {
  CheckImages(context, "Input");
  CheckImages(context, "Image");
  const Shape& image = context.Input("Image").shape;
  SKIFF_ENFORCE(image[2] != 0 && image[3] != 0, kInvalidArgument, "prior_box: Image of shape ",
                image, " has no pixels");
  const TensorMeta& map = context.Input("Input");
  const auto priors = static_cast<int64_t>(PriorExtentsOf(context).size());
  const Shape shape = {map.shape[2], map.shape[3], priors, kBoxSize};
  context.SetOutput("Boxes", shape, map.dtype);
  context.SetOutput("Variances", shape, map.dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  constexpr int64_t kWork = 30;
  return MakeKernel([arguments = PriorBoxArguments<T>(context)](const KernelContext& run) {
    arguments.ForEachPrior(
        run, [](int64_t cells, const PriorOfCell<T>& write) { ForEachOnCpu(cells, kWork, write); });
  });
}

bool ArePositive(const Attribute& value) {
  return std::ranges::all_of(std::get<std::vector<float>>(value),
                             [](float number) { return number > 0; });
}

std::vector<AttrDef> ListAttributes() {
  return {
      {.name = "min_sizes",
       .type = AttrType::kFloats,
       .default_value = std::nullopt,
       .doc = "The sizes of boxes, in pixels of Image.",
       .accepts = ArePositive,
       .expected = "positive numbers"},
      {.name = "max_sizes",
       .type = AttrType::kFloats,
       .default_value = std::vector<float>{},
       .doc = "A greater size for each of min_sizes; empty: none."},
      {.name = "aspect_ratios",
       .type = AttrType::kFloats,
       .default_value = std::vector<float>{},
       .doc = "Width / height of boxes, besides 1.",
       .accepts = ArePositive,
       .expected = "positive numbers"},
      {.name = "variances",
       .type = AttrType::kFloats,
       .default_value = std::nullopt,
       .doc = "The four variances of each box.",
       .accepts =
           [](const Attribute& value) { return std::get<std::vector<float>>(value).size() == 4; },
       .expected = "four numbers"}};
}

std::vector<AttrDef> Attributes() {
  std::vector<AttrDef> attrs = ListAttributes();
  const auto add_flag = [&](StaticText name, bool default_value, StaticText doc) {
    attrs.push_back(
        {.name = name, .type = AttrType::kBool, .default_value = default_value, .doc = doc});
  };
  const auto add_number = [&](StaticText name, float default_value, StaticText doc) {
    attrs.push_back(
        {.name = name, .type = AttrType::kFloat, .default_value = default_value, .doc = doc});
  };
  add_flag("flip", true, "Each of aspect_ratios counts as its inverse, too.");
  add_flag("clip", true, "Moves the corners of boxes into the image.");
  add_number("step_w", 0, "The width of a cell in pixels; 0: the image's width / the map's.");
  add_number("step_h", 0, "The height of a cell in pixels; 0: the image's height / the map's.");
  add_number("offset", 0.5f, "Where the center of a cell is, in cells.");
  add_flag("min_max_aspect_ratios_order", false,
           "The box of a maximum size comes directly after that of its minimum size.");
  return attrs;
}

}  // namespace

std::vector<PriorExtent> PriorExtentsOf(const OpContext& context) {
  const auto& least = context.Attr<std::vector<float>>("min_sizes");
  const auto& most = context.Attr<std::vector<float>>("max_sizes");
  CheckSizes(least, most);
  const bool most_is_second = context.Attr<bool>("min_max_aspect_ratios_order");
  std::vector<PriorExtent> extents;
  for (size_t i = 0; i < least.size(); ++i) {
    const auto size = double{least[i]};
    const size_t first = extents.size();
    for (const double ratio : RatiosOf(context)) {
      const double root = std::sqrt(ratio);
      extents.push_back({.width = size * root / 2, .height = size / root / 2});
    }
    if (most.empty()) continue;
    const double half = std::sqrt(size * double{most[i]}) / 2;
    const size_t at = most_is_second ? first + 1 : extents.size();
    extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(at), {half, half});
  }
  return extents;
}

void RegisterPriorBox(OpRegistry& registry) {
  OpDef def;
  def.type = "prior_box";
  def.doc = "The prior boxes of SSD: boxes of given sizes around each cell of a feature map.";
  def.inputs = {{.name = "Input", .doc = "[N, C, H, W]: the feature map.", .shape_only = true},
                {.name = "Image", .doc = "[N, C, H', W']: the images.", .shape_only = true}};
  def.outputs = {{.name = "Boxes",
                  .doc = "[H, W, priors of a cell, 4]: (xmin, ymin, xmax, ymax), shares of the "
                         "image's extents."},
                 {.name = "Variances", .doc = "The variances of each box."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "the boxes depend on shapes alone";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "prior_box", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
