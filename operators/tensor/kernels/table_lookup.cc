// Reading rows of a table, and two gradients. The dense gradient is as large as the table, however
// few rows were read; the sparse one has one slot per id and costs a copy of Out@GRAD.
#include "operators/tensor/kernels/table_lookup.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/input_checks.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/index_rows.h"
#include "operators/tensor/kernels/stream_copy.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

constexpr int64_t kNoPadding = -1;

struct Table {
  // W, its gradient, or selected rows that stand for it.
  Table(const Tensor& tensor, int64_t padding)
      : rows(tensor.is_selected_rows() ? tensor.height() : tensor.shape()[0]),
        width(tensor.shape()[1]),
        padding_id(padding) {}

  int64_t rows;
  int64_t width;
  int64_t padding_id;

  bool is_padding(int64_t id) const { return padding_id != kNoPadding && id == padding_id; }
  bool has(int64_t id) const { return id >= 0 && id < rows; }
};

// Returns the first position whose id is neither in the table nor padding, or `count` if there is
// none.
template <typename Id>
int64_t FirstBadPosition(const Id* ids, int64_t count, const Table& table) {
  for (int64_t i = 0; i < count; ++i) {
    if (!table.has(ids[i]) && !table.is_padding(ids[i])) return i;
  }
  return count;
}

template <typename Id>
void CheckIds(const Id* ids, int64_t count, const Table& table, std::string_view op) {
  const int64_t bad = FirstBadPosition(ids, count, table);
  SKIFF_ENFORCE(bad == count, kOutOfRange, op, ": Ids[", bad, "] = ", ids[bad], " is outside [0, ",
                table.rows, ")");
}

template <typename T, typename Id>
void Gather(std::string_view op, const Table& table, const T* weights, const Id* ids, int64_t count,
            T* out) {
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, table.width));
  const int64_t row_bytes = table.width * static_cast<int64_t>(sizeof(T));
  const bool streams = count * row_bytes >= kLeastStreamedBytes;
  // Checks ids while it copies instead of in a pass of its own. The body must not throw, so the
  // Error follows after the loop.
  std::atomic<bool> bad{false};
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = out + i * table.width;
      // Read once: another thread may change a feed.
      const int64_t id = ids[i];
      if (table.has(id) && !table.is_padding(id)) {
        CopyRow(weights + id * table.width, row, row_bytes, streams);
      } else {
        std::fill_n(row, table.width, T());
        if (!table.is_padding(id)) bad.store(true, std::memory_order_relaxed);
      }
    }
    if (streams) EndStreams();
  });
  if (bad.load()) CheckIds(ids, count, table, op);
}

// The positions of each id, in ascending order, as lists.
class PositionsOfIds {
 public:
  // Takes at least this many numbers of memory.
  static int64_t MemorySize(int64_t rows, int64_t count) { return rows + count; }

  // Leaves out ids that are padding or outside the table.
  template <typename Id>
  PositionsOfIds(const Table& table, const Id* ids, int64_t count, int64_t* memory)
      : firsts_(memory), nexts_(memory + table.rows) {
    std::fill_n(firsts_, table.rows, kNone);
    for (int64_t i = count; i-- > 0;) {
      // Read once: another thread may change a feed.
      const int64_t id = ids[i];
      if (table.is_padding(id) || !table.has(id)) continue;
      nexts_[i] = std::exchange(firsts_[id], i);
    }
  }

  bool has(int64_t id) const { return firsts_[id] != kNone; }
  template <typename Visit>
  void ForEach(int64_t id, const Visit& visit) const {
    for (int64_t i = firsts_[id]; i != kNone; i = nexts_[i]) visit(i);
  }

 private:
  static constexpr int64_t kNone = -1;

  int64_t* firsts_;  // of each id
  int64_t* nexts_;   // the position after this one with the same id
};

// Each thread adds all rows, in a range of columns of its own. So no two threads write the same
// element, and the order of the additions is that of the ids, however many threads there are. A
// range is at least a cache line wide (but the last one), so in each row, threads share at most the
// lines at the ends of their ranges.
template <typename T>
void ScatterAdd(const Table& table, const T* grad, const PositionsOfIds& positions, int64_t count,
                T* out) {
  // Columns of half that are added up in float32 at once.
  constexpr int64_t kColumns = 256;
  constexpr int64_t kLine = 64 / sizeof(T);
  ZeroBytes(out, table.rows * table.width * static_cast<int64_t>(sizeof(T)));
  const auto add_row = [&](int64_t id, int64_t begin, int64_t columns) {
    using Wide = WideType<T>;
    std::array<Wide, kIsHalf<T> ? kColumns : 0> sums;
    std::array<Wide, kIsHalf<T> ? kColumns : 0> term;
    const int64_t at = id * table.width + begin;
    Wide* to = PlaceOfRow(out, at, sums.data());
    if (kIsHalf<T>) std::fill_n(to, columns, Wide{0});
    positions.ForEach(id, [&](int64_t i) {
      const Wide* from = ReadRow(grad, i * table.width + begin, columns, term.data());
      for (int64_t column = 0; column < columns; ++column) to[column] += from[column];
    });
    WriteRow(to, columns, out, at);
  };
  const int64_t grain_for_work = 8192 / std::max<int64_t>(1, count);
  ParallelFor(table.width, std::max(kLine, grain_for_work), [&](int64_t begin, int64_t end) {
    const int64_t most = kIsHalf<T> ? kColumns : end - begin;
    for (int64_t id = 0; id < table.rows; ++id) {
      if (!positions.has(id)) continue;
      for (int64_t column = begin; column < end; column += most) {
        add_row(id, column, std::min(most, end - column));
      }
    }
  });
}

void CheckTableAndIds(const LookupFacts& facts, const OpContext& context) {
  const TensorMeta& w = context.Input("W");
  const TensorMeta& ids = context.Input("Ids");
  SKIFF_ENFORCE(w.shape.rank() == 2, kInvalidArgument, context.op().type, ": W has shape ", w.shape,
                ", expected [rows, width]");
  CheckIndexDType(context, "Ids");
  if (facts.ids_are_columns) {
    const int rank = ids.shape.rank();
    SKIFF_ENFORCE(rank >= 1 && (ids.shape[rank - 1] == 1 || ids.shape[rank - 1] < 0),
                  kInvalidArgument, context.op().type, ": Ids has shape ", ids.shape,
                  ", expected a last dim of 1");
  }
  SKIFF_ENFORCE(context.IntAttr("padding_idx") >= kNoPadding, kOutOfRange, context.op().type,
                ": padding_idx = ", context.IntAttr("padding_idx"),
                ", expected -1 (none) or an id");
}

// Returns the shape of Out: the dims of Ids, and the length of a row.
Shape RowsShape(const LookupFacts& facts, const OpContext& context) {
  const Shape& ids = context.Input("Ids").shape;
  Shape rows = ids;
  if (facts.ids_are_columns) {
    rows = Shape(ids.dims().first(static_cast<size_t>(ids.rank() - 1)));
  }
  rows.Append(context.Input("W").shape[1]);
  return rows;
}

void InferLookup(const LookupFacts& facts, OpContext& context) {
  CheckTableAndIds(facts, context);
  context.SetOutput("Out", RowsShape(facts, context), context.Input("W").dtype);
  SetLodLevel(context, /*same_rows=*/true, "Ids");
}

void InferLookupGrad(const LookupFacts& facts, OpContext& context) {
  CheckTableAndIds(facts, context);
  const TensorMeta& w = context.Input("W");
  CheckInputLike(context, "Out@GRAD", RowsShape(facts, context), w.dtype);
  if (context.Attr<bool>("is_sparse")) {
    const Shape& ids = context.Input("Ids").shape;
    const int64_t slots = ProductOrUnknown(ids, 0, ids.rank());
    context.SetSelectedRows("W@GRAD", {slots, w.shape[1]}, w.dtype, w.shape[0]);
  } else {
    context.SetOutput("W@GRAD", w.shape, w.dtype);
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareLookup(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, padding = context.IntAttr("padding_idx"),
                         w = In<T>(context, "W"), ids = In<>(context, "Ids"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    const Table table(w.tensor(run), padding);
    VisitIndices(ids.tensor(run), [&](const auto* data) {
      Gather(op, table, w(run), data, ids.count(run), out(run));
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLookupGrad(PrepareContext& context) {
  const int64_t numbers = PositionsOfIds::MemorySize(context.Output("W@GRAD").shape[0],
                                                     context.Input("Ids").shape.element_count());
  const int memory = context.RequestWorkspace(ByteCount(numbers, DType::kInt64));
  return MakeRowsKernel([op = context.op().type, padding = context.IntAttr("padding_idx"), memory,
                         ids = In<>(context, "Ids"), grad = In<T>(context, "Out@GRAD"),
                         out = Out<T>(context, "W@GRAD")](const KernelContext& run) {
    const Table table(out.tensor(run), padding);
    VisitIndices(ids.tensor(run), [&](const auto* data) {
      const int64_t count = ids.count(run);
      CheckIds(data, count, table, op);
      const PositionsOfIds positions(table, data, count,
                                     static_cast<int64_t*>(run.workspace(memory)));
      ScatterAdd(table, grad(run), positions, count, out(run));
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSparseLookupGrad(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, padding = context.IntAttr("padding_idx"),
                         ids = In<>(context, "Ids"), grad = In<T>(context, "Out@GRAD"),
                         out = Out<>(context, "W@GRAD")](const KernelContext& run) {
    Tensor& rows = out.tensor(run);
    const Table table(rows, padding);
    VisitIndices(ids.tensor(run), [&](const auto* data) {
      const int64_t count = ids.count(run);
      CheckIds(data, count, table, op);
      std::transform(
          data, data + count, rows.rows().begin(),
          // Checked again: another thread may have changed a feed.
          [&](int64_t id) { return table.has(id) && !table.is_padding(id) ? id : int64_t{-1}; });
    });
    const T* from = grad(run);
    T* to = rows.data<T>();
    constexpr int64_t kGrain = 16384;
    ParallelFor(rows.element_count(), kGrain, [=](int64_t begin, int64_t end) {
      std::copy(from + begin, from + end, to + begin);
    });
  });
}

}  // namespace

void AddLookupOps(OpRegistry& registry, const LookupFacts& facts) {
  OpDef def;
  def.type = facts.type;
  def.doc = facts.doc;
  def.inputs = {{.name = "Ids", .doc = facts.ids_doc, .checks_data = true},
                {.name = "W", .doc = "The table, [rows, width]."}};
  def.outputs = {
      {.name = "Out", .doc = "The rows: each id of Ids is replaced by `width` elements."}};
  def.attrs = {{.name = "padding_idx",
                .type = AttrType::kLong,
                .default_value = kNoPadding,
                .doc = "The id whose row counts as zeros and has no gradient; -1: none."},
               {.name = "is_sparse",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Whether the gradient is selected rows: the rows of the ids alone."},
               {.name = "is_distributed",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Whether the table is on a parameter server; only false is supported.",
                .accepts = [](const Attribute& value) { return !std::get<bool>(value); },
                .expected = "false: the table must be in this process",
                .refusal = ErrorCode::kUnimplemented},
               // PaddlePaddle sets it in every program with a sparse table.
               {.name = "remote_prefetch",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "A hint for tables on Fluid's parameter servers; ignored."}};
  def.attrs.insert(def.attrs.end(), facts.more_attrs.begin(), facts.more_attrs.end());
  def.infer = [facts](OpContext& context) { InferLookup(facts, context); };
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "W";
  OpDef grad = GradientOf(&def, {"Ids", ForShape("W"), "Out@GRAD"}, {"W@GRAD"});
  grad.doc =
      "W@GRAD[r, :] = the sum of Out@GRAD[i, :] over all i with Ids[i] == r, except for the "
      "row padding_idx, which is zero. With is_sparse, W@GRAD is selected rows with a slot for "
      "each id, repeated ones too; slots of padding_idx are unused, whereas Fluid trains that row.";
  grad.outputs[0].selected_rows = true;
  grad.infer = [facts](OpContext& context) { InferLookupGrad(facts, context); };
  const StaticText grad_type = grad.type;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      facts.type, []<typename T>(PrepareContext& context) { return PrepareLookup<T>(context); });
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      grad_type, []<typename T>(PrepareContext& context) { return PrepareLookupGrad<T>(context); });
  registry.AddSelectedRowsKernels<float, double, Float16, BFloat16>(
      grad_type,
      []<typename T>(PrepareContext& context) { return PrepareSparseLookupGrad<T>(context); });
}

}  // namespace skiff
