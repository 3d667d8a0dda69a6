// lod_reset: Out = X with another LoD.
//
//   Y is ragged       the LoD of Y
//   Y isn't ragged    one level, whose offsets are the data of Y
//   there is no Y     one level, the offsets target_lod
//
// With `append`, a level of offsets becomes a new lowest level below those of X, whose sequences
// then count sequences of the new level instead of rows. A ragged Y replaces the LoD even so.
// Source: Fluid's lod_reset.
//
// Gradient: Out@GRAD with the LoD of X.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/copy_elements.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// Throws Error unless these are the offsets of sequences with `rows` rows in all, -1: any number.
// `what` says where they come from.
void CheckOffsets(const char* what, std::span<const uint64_t> offsets, int64_t rows) {
  const bool starts_at_0 = offsets.size() >= 2 && offsets[0] == 0;
  const bool ends_at_rows =
      rows < 0 || (starts_at_0 && offsets.back() == static_cast<uint64_t>(rows));
  const bool ascends = std::ranges::is_sorted(offsets);
  SKIFF_ENFORCE(starts_at_0 && ends_at_rows && ascends, kInvalidArgument, "lod_reset: ", what,
                " = [", Join(offsets, ", "),
                "], expected at least 2 ascending offsets, the first 0, the last the rows of X",
                rows < 0 ? "" : StrCat(", ", rows));
}

template <typename Offsets>
std::vector<uint64_t> LevelOf(const char* what, const Offsets& offsets, int64_t rows) {
  for (const int64_t offset : offsets) {
    SKIFF_ENFORCE(offset >= 0, kInvalidArgument, "lod_reset: ", what, " has the offset ", offset,
                  ", expected at least 0");
  }
  std::vector<uint64_t> level(offsets.begin(), offsets.end());
  CheckOffsets(what, level, rows);
  return level;
}

// Sets `lod` to the levels of `x` with `level` below them.
void AppendLevel(const LoD& x, const std::vector<uint64_t>& level, LoD* lod) {
  // The rows of X are the sequences of the level below.
  SKIFF_ENFORCE(x.back().back() == level.size() - 1, kInvalidArgument,
                "lod_reset: the lowest level of X ends at ", x.back().back(),
                " and the one to append has ", level.size() - 1, " sequences, expected as many");
  lod->resize(x.size() + 1);
  std::ranges::copy(x, lod->begin());
  lod->back() = level;
}

bool HasRaggedY(const OpContext& context) {
  return context.HasInput("Y") && context.Input("Y").lod_level > 0;
}

bool Appends(const OpContext& context) {
  return context.Attr<bool>("append") && context.Input("X").lod_level > 0;
}

// Takes the offsets from the data of Y, which aren't known before the kernel runs.
void InferFromData(OpContext& context) {
  const DType dtype = context.Input("Y").dtype;
  SKIFF_ENFORCE(dtype == DType::kInt32, kInvalidArgument, "lod_reset: Y is ", dtype,
                " and not ragged, expected a LoD or offsets of int32");
  DeclareLoDLevel(context, "Out", Appends(context) ? context.Input("X").lod_level + 1 : 1);
}

void InferFromAttribute(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  std::vector<uint64_t> level = LevelOf("target_lod", context.IntsAttr("target_lod"), x.shape[0]);
  if (Appends(context)) {
    context.DeriveLoD("Out", {"X"}, x.lod_level + 1,
                      [level = std::move(level)](std::span<const LoD* const> parents, LoD* lod) {
                        AppendLevel(*parents[0], level, lod);
                      });
    return;
  }
  context.DeriveLoD(
      "Out", {}, 1,
      [level = std::move(level)](std::span<const LoD* const>, LoD* lod) { lod->assign(1, level); });
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  RowWidth(context, "X");
  context.SetOutput("Out", x.shape, x.dtype);
  if (HasRaggedY(context)) {
    RowWidth(context, "Y");
    MergeDims(x.shape[0], context.Input("Y").shape[0], "lod_reset: the rows of X and of Y");
    context.ShareLoD("Out", "Y");
  } else if (context.HasInput("Y")) {
    InferFromData(context);
  } else {
    InferFromAttribute(context);
  }
}

void InferGrad(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  CheckInputLike(context, "Out@GRAD", x.shape, x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

template <typename T>
std::unique_ptr<Kernel> PrepareCopy(const In<T>& from, const Out<T>& to) {
  return MakeRowsKernel(
      [=](const KernelContext& run) { CopyElements(from(run), from.count(run), to(run)); });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<T> x(context, "X");
  const In<> y(context, "Y");
  const Out<T> out(context, "Out");
  if (!y.is_there() || HasRaggedY(context)) return PrepareCopy<T>(x, out);
  return MakeRowsKernel([=, appends = Appends(context)](const KernelContext& run) {
    const Tensor& from = x.tensor(run);
    std::vector<uint64_t> level =
        LevelOf("the data of Y", y.tensor(run).values<int32_t>(), from.shape()[0]);
    LoD lod;
    if (appends) {
      AppendLevel(from.lod(), level, &lod);
    } else {
      lod.push_back(std::move(level));
    }
    CopyElements(x(run), x.count(run), out(run));
    out.tensor(run).set_lod(std::move(lod));
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "target_lod",
           .type = AttrType::kInts,
           .default_value = std::vector<int32_t>{},
           .doc = "The offsets of a level, without Y."},
          {.name = "append",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether the level of offsets becomes the lowest one of X's LoD."}};
}

}  // namespace

void RegisterLodReset(OpRegistry& registry) {
  OpDef def;
  def.type = "lod_reset";
  def.doc = "X with the LoD of Y, or with the offsets in Y or target_lod.";
  def.inputs = {{.name = "X", .doc = "Rows, ragged or not."},
                {.name = "Y",
                 .doc = "Ragged, with as many rows; or offsets, int32.",
                 .dispensable = true,
                 .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "X, ragged."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  // The LoD depends on data, if they are those of Y.
  def.data_dependent_shape = true;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "Out@GRAD with the LoD of X.";
  grad.infer = InferGrad;
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  grad.views = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "lod_reset", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "lod_reset_grad", []<typename T>(PrepareContext& context) {
        return PrepareCopy<T>({context, "Out@GRAD"}, {context, "X@GRAD"});
      });
}

}  // namespace skiff
