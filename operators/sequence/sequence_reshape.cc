// sequence_reshape: the elements of each sequence in rows of new_dim instead of the width of X.
//
// Source: Fluid's sequence_reshape. Gradient: Out@GRAD in X's shape.
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/copy_elements.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// Returns the shape of Out.
Shape ReshapedShape(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() == 2, kInvalidArgument, context.op().type, ": X has shape ", x,
                ", expected a matrix");
  OneLevelSequenceCount(context, "X");
  const int64_t width = context.IntAttr("new_dim");
  if (!x.is_known()) return {-1, width};
  SKIFF_ENFORCE(x.element_count() % width == 0, kInvalidArgument, context.op().type, ": X has ",
                x.element_count(), " elements, expected a multiple of new_dim = ", width);
  return {x.element_count() / width, width};
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  context.SetOutput("Out", ReshapedShape(context), x.dtype);
  context.DeriveLoD("Out", {"X"}, 1,
                    [op = context.op().type, from = x.shape[1], to = context.IntAttr("new_dim")](
                        std::span<const LoD* const> parents, LoD* lod) {
                      lod->assign(1, parents[0]->back());
                      std::vector<uint64_t>& offsets = lod->front();
                      for (size_t i = 0; i < offsets.size(); ++i) {
                        const int64_t elements = static_cast<int64_t>(offsets[i]) * from;
                        SKIFF_ENFORCE(elements % to == 0, kInvalidArgument, op, ": sequence ",
                                      i - 1, " ends after element ", elements,
                                      ", expected a multiple of new_dim = ", to);
                        offsets[i] = static_cast<uint64_t>(elements / to);
                      }
                    });
}

void InferGrad(OpContext& context) {
  CheckInputLike(context, "Out@GRAD", ReshapedShape(context), context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(const In<T>& from, const Out<T>& to) {
  return MakeRowsKernel(
      [=](const KernelContext& run) { CopyElements(from(run), from.count(run), to(run)); });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "new_dim",
           .type = AttrType::kInt,
           .default_value = std::nullopt,
           .doc = "The width of Out. A sequence's elements must be a multiple of it.",
           .accepts = [](const Attribute& value) { return std::get<int32_t>(value) > 0; },
           .expected = "above 0"}};
}

}  // namespace

void RegisterSequenceReshape(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_reshape";
  def.doc = "The elements of each sequence in rows of new_dim.";
  def.inputs = {{.name = "X", .doc = "Ragged, one level, a matrix."}};
  def.outputs = {{.name = "Out", .doc = "Ragged, [rows, new_dim]."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  OpDef grad = GradientOf(&def, {ForShape("X"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "Out@GRAD in X's shape.";
  grad.infer = InferGrad;
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "sequence_reshape", []<typename T>(PrepareContext& context) {
        return Prepare<T>({context, "X"}, {context, "Out"});
      });
  registry.AddCpuKernels<float, double>(
      "sequence_reshape_grad", []<typename T>(PrepareContext& context) {
        return Prepare<T>({context, "Out@GRAD"}, {context, "X@GRAD"});
      });
}

}  // namespace skiff
