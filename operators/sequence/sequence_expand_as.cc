// sequence_expand_as: row i of X, as often as sequence i of Y has rows.
//
// Out has the rows and the LoD of Y. A LoD of X doesn't count. Source: Fluid's sequence_expand_as.
//
// Gradient: for each row, the sum of the gradients of its repeats.
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/sequence/kernels/row_repeats.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

Shape RepeatedShape(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  RowWidth(context, "X");
  RowWidth(context, "Y");
  MergeDims(x[0], OneLevelSequenceCount(context, "Y"),
            context.op().type + ": the rows of X and the sequences of Y");
  return WithRows(x, context.Input("Y").shape[0]);
}

void Infer(OpContext& context) {
  context.SetOutput("Out", RepeatedShape(context), context.Input("X").dtype);
  context.ShareLoD("Out", "Y");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([width = RowWidth(context, "X"), x = In<T>(context, "X"),
                         y = In<>(context, "Y"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    RepeatRows(RowRepeats(y.tensor(run).lod()[0]), width, x(run), &out.tensor(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([width = RowWidth(context, "X"), y = In<>(context, "Y"),
                         out_grad = In<>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    SumRepeats(RowRepeats(y.tensor(run).lod()[0]), width, out_grad.tensor(run), x_grad(run));
  });
}

}  // namespace

void RegisterSequenceExpandAs(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_expand_as";
  def.doc = "Each row of X as often as the sequence of Y with its number has rows.";
  def.inputs = {
      {.name = "X", .doc = "As many rows as Y has sequences."},
      {.name = "Y", .doc = "Ragged, one level. Its data don't count.", .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "The repeats, with the LoD of Y."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Y", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "For each row of X the sum of its repeats.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "sequence_expand_as",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "sequence_expand_as_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
