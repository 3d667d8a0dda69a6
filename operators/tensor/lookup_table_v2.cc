// lookup_table_v2: Out[i, :] = W[Ids[i], :], and zeros where Ids[i] == padding_idx.
//
// Source: Fluid's lookup_table_v2. Out has the shape of Ids with the row length of W put behind.
// Gradient, dense: W@GRAD[r, :] = the sum over i with Ids[i] == r of Out@GRAD[i, :], in the order
// of i; the row padding_idx gets nothing. An id outside the table is an Error, raised after the
// op's loop; with padding_idx it need not lie in the table.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/common/input_checks.h"
#include "operators/tensor/data_movement_shared.h"
#include "operators/tensor/strided_copy_shared.h"

namespace skiff {
namespace {

constexpr int64_t kNoPadding = -1;

struct Table {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t padding_id = kNoPadding;

  bool is_padding(int64_t id) const { return padding_id != kNoPadding && id == padding_id; }
  bool has(int64_t id) const { return id >= 0 && id < rows; }
};

Table TableOf(const OpContext& context) {
  const Shape& w = context.Input("W").shape;
  return {.rows = w[0], .width = w[1], .padding_id = context.IntAttr("padding_idx")};
}

// Calls visitor(const int32_t*) or visitor(const int64_t*) with the data of Ids.
template <typename Visitor>
void VisitIds(const Tensor& ids, const Visitor& visitor) {
  if (ids.dtype() == DType::kInt32) return visitor(ids.data<int32_t>());
  visitor(ids.data<int64_t>());
}

// The first position whose id is neither in the table nor padding; `count` if there is none.
template <typename Id>
int64_t FirstBadPosition(const Id* ids, int64_t count, const Table& table) {
  for (int64_t i = 0; i < count; ++i) {
    if (!table.has(ids[i]) && !table.is_padding(ids[i])) return i;
  }
  return count;
}

template <typename Id>
void CheckIds(const Id* ids, int64_t count, const Table& table, const char* op) {
  const int64_t bad = FirstBadPosition(ids, count, table);
  SKIFF_ENFORCE(bad == count, kOutOfRange, op, ": Ids[", bad, "] = ", ids[bad], " is outside [0, ",
                table.rows, ")");
}

template <typename T, typename Id>
void Gather(const Table& table, const T* weights, const Id* ids, int64_t count, T* out) {
  const size_t row_bytes = static_cast<size_t>(table.width) * sizeof(T);
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, table.width));
  std::atomic<bool> bad{false};
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = out + i * table.width;
      if (table.has(ids[i]) && !table.is_padding(ids[i])) {
        std::memcpy(row, weights + ids[i] * table.width, row_bytes);
      } else {
        std::memset(row, 0, row_bytes);
        if (!table.is_padding(ids[i])) bad.store(true, std::memory_order_relaxed);
      }
    }
  });
  if (bad.load()) CheckIds(ids, count, table, "lookup_table_v2");
}

// Every thread adds all rows, each in a range of columns of its own: no two threads write the same
// element and the order of the additions is that of the ids, however many threads there are.
template <typename T, typename Id>
void ScatterAdd(const Table& table, const T* grad, const Id* ids, int64_t count, T* out) {
  ZeroBytes(out, table.rows * table.width * static_cast<int64_t>(sizeof(T)));
  CheckIds(ids, count, table, "lookup_table_v2_grad");
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t grain_for_work = 8192 / std::max<int64_t>(1, count);
  ParallelFor(table.width, std::max(kLine, grain_for_work), [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      if (table.is_padding(ids[i])) continue;
      const T* from = grad + i * table.width;
      T* to = out + static_cast<int64_t>(ids[i]) * table.width;
      for (int64_t column = begin; column < end; ++column) to[column] += from[column];
    }
  });
}

void CheckTableAndIds(const OpContext& context) {
  const TensorMeta& w = context.Input("W");
  const TensorMeta& ids = context.Input("Ids");
  SKIFF_ENFORCE(w.shape.rank() == 2, kInvalidArgument, context.op().type, ": W has shape ", w.shape,
                ", expected [rows, width]");
  SKIFF_ENFORCE(ids.dtype == DType::kInt64 || ids.dtype == DType::kInt32, kInvalidArgument,
                context.op().type, ": Ids is ", ids.dtype, ", expected int64 or int32");
  SKIFF_ENFORCE(context.IntAttr("padding_idx") >= kNoPadding, kOutOfRange, context.op().type,
                ": padding_idx = ", context.IntAttr("padding_idx"),
                ", expected -1 (none) or an id");
}

void InferLookup(OpContext& context) {
  CheckTableAndIds(context);
  const TensorMeta& w = context.Input("W");
  const TensorMeta& ids = context.Input("Ids");
  Shape out = ids.shape;
  out.Append(w.shape[1]);
  context.SetOutput("Out", out, w.dtype);
  const int index = context.OutputIndex("Out");
  if (index >= 0) {
    context.mutable_outputs()[static_cast<size_t>(index)].lod_level = ids.lod_level;
  }
}

// Fluid makes a SelectedRows of the gradient where is_sparse is set.
void RejectSparse(bool is_sparse, const std::string& op) {
  SKIFF_ENFORCE(!is_sparse, kUnimplemented, op,
                ": is_sparse = true; sparse gradients are not supported, set it to false");
}

void InferLookupGrad(OpContext& context) {
  CheckTableAndIds(context);
  RejectSparse(context.Attr<bool>("is_sparse"), context.op().type);
  const TensorMeta& w = context.Input("W");
  Shape expected = context.Input("Ids").shape;
  expected.Append(w.shape[1]);
  CheckInputLike(context, "Out@GRAD", expected, w.dtype);
  context.SetOutput("W@GRAD", w.shape, w.dtype);
}

std::vector<Op> LookupGrad(const GradContext& context) {
  RejectSparse(context.forward().Attr<bool>("is_sparse", false), "lookup_table_v2");
  return GradOp("lookup_table_v2_grad", {"Ids", "W", "Out@GRAD"}, {"W@GRAD"})(context);
}

template <typename T>
std::unique_ptr<Kernel> PrepareLookup(PrepareContext& context) {
  return MakeKernel([table = TableOf(context), w = context.InputIndex("W"),
                     ids = context.InputIndex("Ids"),
                     out = context.OutputIndex("Out")](const KernelContext& run) {
    VisitIds(run.input(ids), [&](const auto* data) {
      Gather(table, run.input(w).data<T>(), data, run.input(ids).element_count(),
             run.output(out).data<T>());
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLookupGrad(PrepareContext& context) {
  return MakeKernel([table = TableOf(context), ids = context.InputIndex("Ids"),
                     grad = context.InputIndex("Out@GRAD"),
                     out = context.OutputIndex("W@GRAD")](const KernelContext& run) {
    if (out < 0) return;
    VisitIds(run.input(ids), [&](const auto* data) {
      ScatterAdd(table, run.input(grad).data<T>(), data, run.input(ids).element_count(),
                 run.output(out).data<T>());
    });
  });
}

std::vector<AttrDef> LookupAttrs() {
  return {{.name = "padding_idx",
           .type = AttrType::kLong,
           .default_value = kNoPadding,
           .doc = "The id whose row counts as zeros and learns nothing; -1: none."},
          {.name = "is_sparse",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "A sparse gradient; only false has a gradient for now."}};
}

void AddLookupGrad(OpRegistry& registry) {
  OpDef def;
  def.type = "lookup_table_v2_grad";
  def.doc =
      "W@GRAD[r, :] = the sum of Out@GRAD[i, :] over all i with Ids[i] == r, except for the "
      "row padding_idx, which is zero.";
  def.inputs = {{.name = "Ids", .doc = "Ids of the forward op.", .checks_data = true},
                {.name = "W", .doc = "The table.", .shape_only = true},
                {.name = "Out@GRAD", .doc = "The gradient of Out."}};
  def.outputs = {{.name = "W@GRAD", .doc = "The gradient of W, dense."}};
  def.attrs = LookupAttrs();
  def.infer = InferLookupGrad;
  def.no_gradient_reason = "second derivatives are not provided";
  def.kernel_dtype_slot = "Out@GRAD";
  def.data_checked_by = "lookup_table_v2";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "lookup_table_v2_grad",
      []<typename T>(PrepareContext& context) { return PrepareLookupGrad<T>(context); });
}

}  // namespace

void RegisterLookupTableV2(OpRegistry& registry) {
  OpDef def;
  def.type = "lookup_table_v2";
  def.doc = "Out[i, :] = W[Ids[i], :]; zeros where Ids[i] == padding_idx.";
  def.inputs = {
      {.name = "Ids", .doc = "Row numbers, int64 or int32, of any shape.", .checks_data = true},
      {.name = "W", .doc = "The table, [rows, width]."}};
  def.outputs = {{.name = "Out", .doc = "The rows, of shape Ids dims + [width]."}};
  def.attrs = LookupAttrs();
  def.infer = InferLookup;
  def.grad = LookupGrad;
  def.kernel_dtype_slot = "W";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("lookup_table_v2", []<typename T>(PrepareContext& context) {
    return PrepareLookup<T>(context);
  });
  AddLookupGrad(registry);
}

}  // namespace skiff
