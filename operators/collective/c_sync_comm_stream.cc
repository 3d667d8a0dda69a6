// c_sync_comm_stream and c_sync_calc_stream: Out = X.
//
// Source: Fluid's ops, by which a program waits for the stream of messages, or that of other ops. A
// plan of Skiff orders its streams by itself.
#include <cstddef>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/all_dtypes.h"
#include "operators/common/memory_mover.h"

namespace skiff {
namespace {

OpDef SyncDef(StaticText type, StaticText doc, bool takes_lists) {
  OpDef def;
  def.type = type;
  def.doc = doc;
  def.inputs = {{.name = "X", .doc = "Any tensors.", .duplicable = takes_lists}};
  def.outputs = {{.name = "Out", .doc = "Like X.", .duplicable = takes_lists}};
  def.infer = [](OpContext& context) {
    SKIFF_ENFORCE(context.InputCount("X") == context.OutputCount("Out"), kInvalidArgument,
                  context.op().type, ": ", context.InputCount("X"), " X and ",
                  context.OutputCount("Out"), " Out, expected as many of both");
    for (size_t i = 0; i < context.InputCount("X"); ++i) context.SetOutputLike("Out", "X", i);
  };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "it orders what is done with gradients";
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  def.collective = true;
  return def;
}

std::unique_ptr<Kernel> PrepareSync(PrepareContext& context) {
  std::vector<std::pair<In<>, Out<>>> pairs;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    pairs.emplace_back(In<>(context, "X", i), Out<>(context, "Out", i));
  }
  return MakeRowsKernel([pairs = std::move(pairs)](const KernelContext& run) {
    for (const auto& [x, out] : pairs) {
      if (!x.is_there() || !out.is_there()) continue;
      MemoryMoverOf(run).CopyBytes(run, x(run), out(run), x.tensor(run).byte_count());
    }
  });
}

}  // namespace

void RegisterCSyncCommStream(OpRegistry& registry) {
  OpDef comm = SyncDef("c_sync_comm_stream", "Out[i] = X[i], once messages are through.", true);
  comm.attrs = RingAttrs();
  registry.Add(std::move(comm));
  registry.Add(SyncDef("c_sync_calc_stream", "Out = X, once X is computed.", false));
  for (const char* type : {"c_sync_comm_stream", "c_sync_calc_stream"}) {
    AddKernelsForAllDTypes(registry, type, PrepareSync);
  }
}

}  // namespace skiff
