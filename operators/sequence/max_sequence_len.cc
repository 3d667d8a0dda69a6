// max_sequence_len: the length of the longest sequence of a rank table.
//
// Source: Fluid's max_sequence_len.
#include "framework/op/registry.h"
#include "operators/sequence/kernels/rank_table.h"

namespace skiff {

void RegisterMaxSequenceLen(OpRegistry& registry) {
  OpDef def;
  def.type = "max_sequence_len";
  def.doc = "The length of the longest sequence, 0 if there is none.";
  def.inputs = {RankTableSlot()};
  def.outputs = {{.name = "Out", .doc = "int64 [1]."}};
  def.infer = [](OpContext& context) {
    RankTableSize(context);
    context.SetOutput("Out", Shape({1}), DType::kInt64);
  };
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the result is an integer";
  def.is_on_host = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<int64_t>("max_sequence_len", []<typename T>(PrepareContext& context) {
    return MakeRowsKernel([table = In<>(context, "RankTable"),
                           out = Out<int64_t>(context, "Out")](const KernelContext& run) {
      *out(run) = RankTable(table.tensor(run)).step_count();
    });
  });
}

}  // namespace skiff
