// sequence_expand: each item of X as often as the sequences of a level of Y's LoD have items.
//
//   Out = item 0 of X, n_0 times, then item 1, n_1 times, …
//   n_i = offset i + 1 minus offset i of level ref_level of Y's LoD; -1: the lowest level
//
// The items are the sequences of X, whose repeats are sequences of Out; or the rows of X, if it
// isn't ragged. Then Out isn't ragged either. Source: Fluid's sequence_expand.
//
// Gradient: for each item, the sum of the gradients of its repeats.
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/offset_count.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/row_repeats.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// Returns the level of Y's LoD that says how often items are repeated.
size_t RefLevel(const OpContext& context) {
  const int64_t level = context.IntAttr("ref_level");
  context.InputLoD("Y");
  const int64_t levels = context.Input("Y").lod_level;
  SKIFF_ENFORCE(level >= -1 && level < levels, kInvalidArgument, context.op().type,
                ": ref_level = ", level, " and Y has ", levels,
                " LoD levels, expected -1 or a level from 0 to ", levels - 1);
  return static_cast<size_t>(level < 0 ? levels - 1 : level);
}

void CheckItems(const std::string& op, const char* what, int64_t found, int64_t expected) {
  SKIFF_ENFORCE(found == expected, kInvalidArgument, op, ": X has ", found, " ", what,
                ", expected ", expected, ", as many as sequences in level ref_level of Y");
}

// Writes the LoD of Out, given those of a ragged X and of Y.
void RepeatedLoD(const std::string& op, size_t level, std::span<const LoD* const> parents,
                 LoD* lod) {
  const SequenceRows sequences(parents[0]->front());
  const SequenceRows times((*parents[1])[level]);
  CheckItems(op, "sequences", sequences.size(), times.size());
  SKIFF_ENFORCE((*parents[1])[level].back() > 0, kInvalidArgument, op,
                ": no sequence of X would be repeated, expected at least one in Out");
  CheckOffsetCount(static_cast<int64_t>((*parents[1])[level].back()));
  lod->resize(1);
  std::vector<uint64_t>& offsets = lod->front();
  offsets.assign(1, 0);
  for (int64_t i = 0; i < sequences.size(); ++i) {
    const auto rows = static_cast<uint64_t>(sequences[i].count());
    for (int64_t k = 0; k < times[i].count(); ++k) offsets.push_back(offsets.back() + rows);
  }
}

// Returns the rows of Out, -1 if they aren't known while a program is built.
int64_t RepeatedRows(const OpContext& context) {
  const size_t level = RefLevel(context);
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.lod_level <= 1, kInvalidArgument, context.op().type, ": X has ", x.lod_level,
                " LoD levels, expected none or 1");
  const LoD* y_lod = context.InputLoD("Y");
  if (y_lod == nullptr) return -1;
  const SequenceRows times((*y_lod)[level]);
  if (x.lod_level == 0) {
    if (x.shape[0] >= 0) CheckItems(context.op().type, "rows", x.shape[0], times.size());
    return static_cast<int64_t>((*y_lod)[level].back());
  }
  const LoD* x_lod = context.InputLoD("X");
  if (x_lod == nullptr) return -1;
  LoD repeated;
  RepeatedLoD(context.op().type, level, std::vector<const LoD*>{x_lod, y_lod}, &repeated);
  return static_cast<int64_t>(repeated.front().back());
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  RowWidth(context, "X");
  context.SetOutput("Out", WithRows(x.shape, RepeatedRows(context)), x.dtype);
  const size_t level = RefLevel(context);
  if (x.lod_level == 0) {
    context.DependOnLoD("Out", {"Y"}, [level](std::span<const LoD* const> parents, LoD* lod) {
      lod->assign(1, (*parents[0])[level]);
    });
    return;
  }
  context.DeriveLoD("Out", {"X", "Y"}, 1,
                    [level, op = context.op().type](std::span<const LoD* const> parents, LoD* lod) {
                      RepeatedLoD(op, level, parents, lod);
                    });
}

void InferGrad(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  RowWidth(context, "X");
  CheckInputLike(context, "Out@GRAD", WithRows(x.shape, RepeatedRows(context)), x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

RowRepeats RepeatsOf(const Tensor& x, const Tensor& y, size_t level) {
  const std::vector<uint64_t>& times = y.lod()[level];
  return x.lod().empty() ? RowRepeats(times) : RowRepeats(times, x.lod()[0]);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([level = RefLevel(context), width = RowWidth(context, "X"),
                         x = In<T>(context, "X"), y = In<>(context, "Y"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    RepeatRows(RepeatsOf(x.tensor(run), y.tensor(run), level), width, x(run), &out.tensor(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([level = RefLevel(context), width = RowWidth(context, "X"),
                         x = In<>(context, "X"), y = In<>(context, "Y"),
                         out_grad = In<>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    SumRepeats(RepeatsOf(x.tensor(run), y.tensor(run), level), width, out_grad.tensor(run),
               x_grad(run));
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "ref_level",
           .type = AttrType::kInt,
           .default_value = -1,
           .doc = "The level of Y's LoD that counts; -1: the lowest one."}};
}

}  // namespace

void RegisterSequenceExpand(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_expand";
  def.doc = "Each sequence or row of X as often as the sequences of a level of Y have items.";
  def.inputs = {{.name = "X",
                 .doc = "Ragged, one level, with as many sequences as that level of Y; or not "
                        "ragged, with as many rows."},
                {.name = "Y", .doc = "Ragged. Only its LoD counts.", .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "The repeats. Ragged if X is."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Y", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "For each item of X the sum of its repeats.";
  grad.infer = InferGrad;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "sequence_expand", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "sequence_expand_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
