// lod_rank_table: the sequences of X, the longest one first.
//
// Source: Fluid's lod_rank_table, whose result is a variable of a kind of its own; here it is a
// tensor (kernels/rank_table.h).
#include <algorithm>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/sequence/kernels/rank_table.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const int64_t sequences = SequenceCount(context, "X");
  const int32_t levels = context.Input("X").lod_level;
  const int64_t level = context.IntAttr("level");
  SKIFF_ENFORCE(level == levels - 1, kUnimplemented, "lod_rank_table: level = ", level,
                " of an input with ", levels, " LoD levels: expected the lowest one, ", levels - 1);
  context.SetOutput("Out", Shape({sequences, RankTable::kColumns}), DType::kInt64);
  const int out = context.OutputIndex("Out");
  if (out >= 0)
    context.mutable_outputs()[static_cast<size_t>(out)].shape_lod = context.Input("X").lod;
}

}  // namespace

void RegisterLodRankTable(OpRegistry& registry) {
  OpDef def;
  def.type = "lod_rank_table";
  def.doc =
      "The sequences of X by length, the longest one first: number, length and first row of each.";
  def.inputs = {{.name = "X", .doc = "Ragged. Its data don't count.", .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "int64 [sequences, 3]."}};
  def.attrs = {{.name = "level",
                .type = AttrType::kInt,
                .default_value = 0,
                .doc = "The LoD level whose sequences are ranked: the lowest one."}};
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the result doesn't depend on the elements of X";
  def.kernel_dtype_slot = "Out";
  // The host reads the LoD that the kernel gives to the table.
  def.is_on_host = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<int64_t>("lod_rank_table", []<typename T>(PrepareContext& context) {
    return MakeRowsKernel([x = In<>(context, "X"), out = Out<int64_t>(context, "Out"),
                           order = std::vector<int64_t>()](const KernelContext& run) mutable {
      const auto& offsets = x.tensor(run).lod().back();
      const SequenceRows sequences(offsets);
      RankSequences(offsets, &order);
      int64_t* entry = out(run);
      for (const int64_t sequence : order) {
        *entry++ = sequence;
        *entry++ = sequences[sequence].count();
        *entry++ = sequences[sequence].begin;
      }
      // For a later part of the program, which gets the table as a tensor.
      out.tensor(run).ShareLoD(x.tensor(run).shared_lod());
    });
  });
}

}  // namespace skiff
