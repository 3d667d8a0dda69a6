// split: Out[0], Out[1], … = X cut into pieces along `axis`.
//
// Source: Fluid's split: `num` equal pieces, or pieces of the extents `sections`, one of which may
// be -1. The gradient is a concat of the pieces' gradients.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "framework/base/error.h"
#include "operators/tensor/kernels/axis_parts.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

std::vector<int64_t> EqualExtents(int64_t extent, int64_t pieces, const Shape& x) {
  SKIFF_ENFORCE(extent < 0 || extent % pieces == 0, kInvalidArgument, "split: extent ", extent,
                " of X of shape ", x, " is not a multiple of num = ", pieces);
  return std::vector<int64_t>(static_cast<size_t>(pieces), extent < 0 ? -1 : extent / pieces);
}

void CheckPieces(const OpContext& context, int64_t pieces) {
  const auto outputs = static_cast<int64_t>(context.OutputCount("Out"));
  SKIFF_ENFORCE(pieces == outputs, kInvalidArgument, "split: ", pieces, " pieces for ", outputs,
                " outputs");
}

// Returns the extents of all pieces, -1 for those that aren't known.
std::vector<int64_t> ExtentsOf(const OpContext& context, int axis) {
  const Shape& x = context.Input("X").shape;
  const int64_t extent = x[axis];
  const int64_t pieces = context.IntAttr("num");
  if (!context.Knows("sections")) return context.DimsAttr("sections");
  std::vector<int64_t> sections = context.IntsAttr("sections");
  if (sections.empty()) {
    SKIFF_ENFORCE(pieces > 0, kInvalidArgument, "split: num = ", pieces,
                  " and no sections; expected a positive num or sections");
    CheckPieces(context, pieces);
    return EqualExtents(extent, pieces, x);
  }
  const std::string text = Join(sections, ", ");
  int64_t known = 0;
  auto open = sections.end();
  for (auto it = sections.begin(); it != sections.end(); ++it) {
    SKIFF_ENFORCE(*it >= -1, kInvalidArgument, "split: sections = [", text,
                  "] has a piece of extent ", *it);
    if (*it >= 0) {
      SKIFF_ENFORCE(*it <= INT64_MAX - known, kOutOfRange, "split: sections = [", text,
                    "] add up to more than 64 bits");
      known += *it;
      continue;
    }
    SKIFF_ENFORCE(open == sections.end(), kInvalidArgument, "split: sections = [", text,
                  "] has more than one -1");
    open = it;
  }
  if (extent < 0) return sections;
  const bool fits = open == sections.end() ? known == extent : known <= extent;
  SKIFF_ENFORCE(fits, kInvalidArgument, "split: sections = [", text,
                "] don't add up to the extent ", extent, " of X of shape ", x);
  if (open != sections.end()) *open = extent - known;
  return sections;
}

int AxisOf(const OpContext& context) {
  return NormalizeAxis(context.IntAttr("axis"), context.Input("X").shape.rank(), "split: axis");
}

void InferSplit(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  if (!context.Knows("axis")) {
    for (size_t i = 0; i < context.OutputCount("Out"); ++i) {
      context.SetOutput("Out", UnknownDims(x.shape.rank()), x.dtype, i);
    }
    return;
  }
  const int axis = AxisOf(context);
  const std::vector<int64_t> extents = ExtentsOf(context, axis);
  CheckPieces(context, static_cast<int64_t>(extents.size()));
  for (size_t i = 0; i < extents.size(); ++i) {
    Shape piece = x.shape;
    piece[axis] = extents[i];
    context.SetOutput("Out", piece, x.dtype, i);
    SetLodLevel(context, /*same_rows=*/axis != 0, "X", "Out", i);
  }
}

std::vector<Op> SplitGrad(const GradContext& context) {
  Op concat("concat");
  const auto& attrs = context.forward().attrs;
  if (const auto axis = attrs.find("axis"); axis != attrs.end()) concat.attrs.insert(*axis);
  concat.SetInput("X", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("X"));
  if (!context.Input("AxisTensor").empty()) {
    concat.SetInput("AxisTensor", context.Input("AxisTensor"));
  }
  return {std::move(concat)};
}

}  // namespace

void RegisterSplit(OpRegistry& registry) {
  OpDef def;
  def.type = "split";
  def.doc = "Out[i] = piece i of X along `axis`: `num` equal pieces, or pieces of `sections`.";
  def.inputs = {{.name = "X", .doc = "The tensor to cut."},
                AttributeSlot("AxisTensor", "axis"),
                AttributeListSlot("SectionsTensorList", "sections")};
  def.outputs = {{.name = "Out", .doc = "The pieces, in order.", .duplicable = true}};
  def.attrs = {{.name = "sections",
                .type = AttrType::kInts,
                .default_value = std::vector<int32_t>{},
                .doc = "The extents of the pieces; one may be -1, which takes the rest."},
               {.name = "num",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "The number of equal pieces; read if `sections` is empty."},
               {.name = "axis",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "The axis to cut, negative from the back."}};
  def.infer = InferSplit;
  def.precision = Precision::kFollow;
  def.grad = SplitGrad;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "split", [](PrepareContext& context) {
    const int axis = AxisOf(context);
    return MakeSplitKernel(context, "X", "Out", axis, ExtentsOf(context, axis));
  });
}

}  // namespace skiff
