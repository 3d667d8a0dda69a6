// c_reducescatter: Out = this rank's part of the sum of X over all ranks. X has nranks parts of
// equal rows; rank r gets part r. The sum is that of c_allreduce_sum.
//
// Source: Fluid's c_reducescatter.
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/collective/kernels/reduce_scatter.h"
#include "operators/common/half.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const int64_t nranks = context.IntAttr("nranks");
  SKIFF_ENFORCE(x.shape.rank() >= 1 && (x.shape[0] < 0 || x.shape[0] % nranks == 0),
                kInvalidArgument, "c_reducescatter: X has shape ", x.shape,
                ", expected rows that nranks = ", nranks, " divides");
  Shape shape = x.shape;
  if (shape[0] > 0) shape[0] /= nranks;
  context.SetOutput("Out", shape, x.dtype);
}

}  // namespace

void RegisterCReducescatter(OpRegistry& registry) {
  OpDef def;
  def.type = "c_reducescatter";
  def.doc =
      "Out = this rank's part of X0 + X1 + ..., the sum of X over all ranks, cut into nranks parts "
      "of equal rows.";
  def.inputs = {{.name = "X", .doc = "Floats, int32 or int64, [nranks * n, ...]."}};
  def.outputs = {{.name = "Out", .doc = "[n, ...]."}};
  def.attrs = RingAttrs();
  def.attrs.push_back(RankCountAttr());
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "ops between ranks are not differentiated";
  def.collective = true;
  def.own_outputs = {"Out"};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t, Float16, BFloat16>(
      "c_reducescatter", []<typename>(PrepareContext& context) {
        return PrepareReduceScatter(context, HostReducer());
      });
}

}  // namespace skiff
