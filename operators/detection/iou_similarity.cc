// iou_similarity: how much each box of X and each box of Y overlap.
//
//   Out[i, j] = area of X[i] ∩ Y[j] / (area of X[i] ∪ Y[j] + 1e-10)
//
// Boxes of pixels (box_normalized = false) include their last row and column. A coordinate that is
// NaN makes NaN.
//
// Source: Fluid's iou_similarity (PaddlePaddle 2.6).
#include <memory>
#include <utility>

#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/detection/kernels/box_overlap.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  CheckBoxes(context, "X", 2, "X");
  CheckBoxes(context, "Y", 2, "X");
  const TensorMeta& x = context.Input("X");
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", {x.shape[0], context.Input("Y").shape[0]}, x.dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  constexpr int64_t kWork = 20;
  return MakeRowsKernel([offset = PixelOffset<T>(context.Attr<bool>("box_normalized")),
                         x = In<T>(context, "X"), y = In<T>(context, "Y"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    ForEachOnCpu(out.count(run), kWork,
                 BoxOverlaps<T>{y.shape(run)[0], offset, x(run), y(run), out(run)});
  });
}

}  // namespace

void RegisterIouSimilarity(OpRegistry& registry) {
  OpDef def;
  def.type = "iou_similarity";
  def.doc = "Out[i, j] = the area that X[i] and Y[j] share / the area of both.";
  def.inputs = {{.name = "X", .doc = "[N, 4]: boxes (xmin, ymin, xmax, ymax)."},
                {.name = "Y", .doc = "[M, 4]: boxes."}};
  def.outputs = {{.name = "Out", .doc = "[N, M], with the LoD of X."}};
  def.attrs = {{.name = "box_normalized",
                .type = AttrType::kBool,
                .default_value = true,
                .doc = "If false, coordinates are pixels, and a box includes its last row and "
                       "column."}};
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "it tells which boxes belong together";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "iou_similarity", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
