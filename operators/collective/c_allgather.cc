// c_allgather: Out = the X of all ranks, one after the other, in the order of ranks.
//
// Source: Fluid's c_allgather.
#include <cstddef>
#include <span>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/all_dtypes.h"
#include "operators/common/memory_mover.h"
#include "operators/common/ranks/rank_gather.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.shape.rank() >= 1, kInvalidArgument,
                "c_allgather: X has no dims, expected rows to put one after the other");
  Shape shape = x.shape;
  if (shape[0] > 0) shape[0] = MultiplyCounts(shape[0], context.IntAttr("nranks"));
  context.SetOutput("Out", shape, x.dtype);
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([x = In<>(context, "X"), out = Out<>(context, "Out"),
                         nranks = context.IntAttr("nranks"),
                         messages = Messages()](const KernelContext& run) mutable {
    CheckRankCount(run, "c_allgather", nranks);
    const int64_t bytes = x.tensor(run).byte_count();
    const auto part_of = [&, all = static_cast<std::byte*>(out(run))](int32_t rank) {
      return std::span(all + rank * bytes, static_cast<size_t>(bytes));
    };
    const std::span<std::byte> own = part_of(WorldOf(run).rank);
    MemoryMoverOf(run).CopyBytes(run, x(run), own.data(), bytes);
    GatherFromOthers(run, own, part_of, &messages);
  });
}

}  // namespace

void RegisterCAllgather(OpRegistry& registry) {
  OpDef def;
  def.type = "c_allgather";
  def.doc = "Out = [X0, X1, ...], the rows of X of all ranks, in the order of ranks.";
  def.inputs = {{.name = "X", .doc = "[n, ...], of one shape on all ranks."}};
  def.outputs = {{.name = "Out", .doc = "[nranks * n, ...]."}};
  def.attrs = RingAttrs();
  def.attrs.push_back(RankCountAttr());
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "ops between ranks are not differentiated";
  def.collective = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "c_allgather", Prepare);
}

}  // namespace skiff
