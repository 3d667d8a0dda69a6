// box_coder: boxes as they are seen from prior boxes, and back.
//
// A prior box has a center (px, py), a width pw and a height ph; a target t likewise. v are four
// variances: of each prior, the attribute's, or 1. encode_center_size, of each target i and each
// prior j:
//
//   OutputBox[i, j] = ((tx - px) / pw / v0, (ty - py) / ph / v1,
//                      ln|tw / pw| / v2, ln|th / ph| / v3)
//
// decode_center_size, of code t = TargetBox[i, j], with prior j, or with prior i if axis is 1:
//
//   x = v0 · t0 · pw + px, y = v1 · t1 · ph + py, w = exp(v2 · t2) · pw, h = exp(v3 · t3) · ph
//   OutputBox[i, j] = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
//
// Boxes of pixels (box_normalized = false) include their last row and column: widths and heights
// are greater by 1, and a decoded xmax and ymax less by 1. A prior without width or height divides
// by 0.
//
// Source: Fluid's box_coder (PaddlePaddle 2.6).
#include <memory>
#include <utility>

#include "framework/op/registry.h"
#include "operators/detection/kernels/box_coding.h"

namespace skiff {
namespace {

void CheckVariances(const OpContext& context) {
  const bool has_attr = !context.Attr<std::vector<float>>("variance").empty();
  if (!context.HasInput("PriorBoxVar")) return;
  SKIFF_ENFORCE(!has_attr, kInvalidArgument,
                "box_coder: PriorBoxVar and the attribute variance are there, expected one");
  CheckBoxes(context, "PriorBoxVar", 2, "PriorBox");
  MergeDims(context.Input("PriorBox").shape[0], context.Input("PriorBoxVar").shape[0],
            "box_coder: the rows of PriorBox and of PriorBoxVar");
}

void Infer(OpContext& context) {
  const bool encodes = context.Attr<std::string>("code_type") == "encode_center_size";
  CheckBoxes(context, "PriorBox", 2, "PriorBox");
  CheckBoxes(context, "TargetBox", encodes ? 2 : 3, "PriorBox");
  CheckVariances(context);
  const TensorMeta& target = context.Input("TargetBox");
  const int64_t priors = context.Input("PriorBox").shape[0];
  context.SetOutputLike("OutputBox", "TargetBox");
  Shape shape = {target.shape[0], priors, kBoxSize};
  if (!encodes) {
    const int axis = context.IntAttr("axis") == 1 ? 0 : 1;
    shape = {target.shape[0], target.shape[1], kBoxSize};
    shape[axis] = MergeDims(target.shape[axis], priors,
                            "box_coder: the prior boxes and their dim of TargetBox");
  }
  context.SetOutput("OutputBox", shape, target.dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  constexpr int64_t kWork = 60;
  return MakeRowsKernel([arguments = BoxCoderArguments<T>(context)](const KernelContext& run) {
    const int64_t boxes = arguments.boxes(run);
    if (arguments.encodes()) {
      ForEachOnCpu(boxes, kWork, EncodeBox<T>{arguments.Of(run)});
    } else {
      ForEachOnCpu(boxes, kWork, DecodeBox<T>{arguments.Of(run)});
    }
  });
}

std::vector<AttrDef> Attributes() {
  return {
      ChoiceAttr("code_type", "encode_center_size", {"encode_center_size", "decode_center_size"},
                 "encode_center_size or decode_center_size."),
      {.name = "box_normalized",
       .type = AttrType::kBool,
       .default_value = true,
       .doc = "If false, coordinates are pixels, and a box includes its last row and column."},
      {.name = "axis",
       .type = AttrType::kInt,
       .default_value = 0,
       .doc = "Of decode_center_size: 0 if TargetBox[i, j] is seen from prior j, 1 if from "
              "prior i.",
       .accepts =
           [](const Attribute& value) {
             const int32_t axis = std::get<int32_t>(value);
             return axis == 0 || axis == 1;
           },
       .expected = "0 or 1"},
      {.name = "variance",
       .type = AttrType::kFloats,
       .default_value = std::vector<float>{},
       .doc = "The four variances of all priors; empty: PriorBoxVar's, or 1.",
       .accepts =
           [](const Attribute& value) {
             const size_t size = std::get<std::vector<float>>(value).size();
             return size == 0 || size == 4;
           },
       .expected = "four numbers, or none"}};
}

}  // namespace

void RegisterBoxCoder(OpRegistry& registry) {
  OpDef def;
  def.type = "box_coder";
  def.doc = "Encodes boxes by their distances from prior boxes, or decodes such distances.";
  def.inputs = {{.name = "PriorBox", .doc = "[M, 4]: boxes (xmin, ymin, xmax, ymax)."},
                {.name = "PriorBoxVar",
                 .doc = "[M, 4]: the variances of each prior box.",
                 .dispensable = true},
                {.name = "TargetBox",
                 .doc = "[N, 4], boxes to encode, or [N, M, 4], codes to decode; [M, N, 4] with "
                        "axis = 1."}};
  def.outputs = {
      {.name = "OutputBox", .doc = "[N, M, 4], or the shape of TargetBox; the LoD of TargetBox."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "a loss compares the codes, not the boxes";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "box_coder", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
