// CUDA kernels of the ops that read, overwrite and add rows by index: lookup_table, gather,
// index_select, gather_nd, scatter, scatter_nd_add and their kin. As in index_rows.h, a tensor is
// [outer, length, inner], indices count along the middle axis, and a row is `inner` elements.
//
// Reading is one pass. Sums sort the indices first (cuda_row_sums.h).
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_row_sort.h"
#include "operators/common/cuda/cuda_row_sums.h"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_words.cuh"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/cuda_indexed_rows.cuh"
#include "operators/tensor/kernels/data_mover.h"

namespace skiff {
namespace {

// The row numbers that a gather_nd has found; -1: none. Nothing is refused any more.
RowIndices FoundRows(const int32_t* rows, int64_t length) {
  return {rows, /*are_wide=*/false, length, /*padding_id=*/-1, /*fault=*/nullptr};
}

// out[o, i, :] = x[o, indices[i], :], zeros for padding.
template <typename Index>
struct TakenRows {
  Divisor<Index> row_words;
  Divisor<Index> count;
  int64_t inner;  // words of a row
};

template <typename Word, typename Index>
__global__ void TakeRows(TakenRows<Index> shape, RowIndices indices, Index words, const Word* x,
                         Word* out) {
  const Index stride = Index{gridDim.x} * blockDim.x;
  for (Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += stride) {
    Index outer = i;
    const auto column = static_cast<int64_t>(shape.row_words.TakeRemainder(&outer));
    const auto at = static_cast<int64_t>(shape.count.TakeRemainder(&outer));
    const int64_t index = indices.At(at);
    if (indices.IsRow(index) && !indices.IsPadding(index)) {
      const int64_t row = static_cast<int64_t>(outer) * indices.length + index;
      out[i] = x[row * shape.inner + column];
    } else {
      out[i] = Word{};
      if (column == 0 && indices.fault != nullptr) indices.NoteIfRefused(at, index);
    }
  }
}

// rows[i] = the number of the row, -1 for padding and what is refused. `rows` may be nullptr.
template <typename Row>
__global__ void ResolveRows(RowIndices indices, int64_t count, Row* rows) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t index = indices.At(i);
    indices.NoteIfRefused(i, index);
    if (rows == nullptr) continue;
    const bool is_row = indices.IsRow(index) && !indices.IsPadding(index);
    rows[i] = is_row ? static_cast<Row>(index) : Row{-1};
  }
}

// The dims that tuples index.
struct TupleDims {
  int width = 0;
  int64_t dims[Shape::kMaxRank] = {};
};

// The same for tuples of indices. indices.length isn't used.
__global__ void ResolveTuples(RowIndices indices, TupleDims tuple, int64_t count, int32_t* rows) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    int64_t row = 0;
    for (int axis = 0; axis < tuple.width; ++axis) {
      const int64_t position = i * tuple.width + axis;
      const int64_t index = indices.At(position);
      if (index >= 0 && index < tuple.dims[axis]) {
        if (row >= 0) row = row * tuple.dims[axis] + index;
      } else {
        NoteFault(indices.fault, position, index);
        row = -1;
      }
    }
    rows[i] = static_cast<int32_t>(row);
  }
}

void LaunchTakeRows(const KernelContext& run, const AxisExtents& axis, const RowIndices& indices,
                    int64_t count, int64_t element_bytes, const void* x, void* out) {
  const int64_t row_bytes = axis.inner * element_bytes;
  const int64_t word_bytes = WordBytes({row_bytes, AddressOf(x), AddressOf(out)});
  const int64_t row_words = row_bytes / word_bytes;
  const int64_t words = axis.outer * count * row_words;
  if (words == 0) return;
  VisitIndexType(words, [&]<typename Index>() {
    const TakenRows<Index> shape{Divisor<Index>(row_words), Divisor<Index>(count), row_words};
    VisitWord(word_bytes, [&]<typename Word>() {
      TakeRows<Word, Index><<<CudaBlocksOfThreads(words), kCudaThreads, 0, StreamOf(run)>>>(
          shape, indices, static_cast<Index>(words), static_cast<const Word*>(x),
          static_cast<Word*>(out));
    });
  });
  CheckLaunch("rows by index");
}

template <typename Row>
void LaunchResolveRows(const KernelContext& run, const RowIndices& indices, int64_t count,
                       Row* rows) {
  if (count == 0) return;
  ResolveRows<<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(indices, count, rows);
  CheckLaunch("numbers of rows");
}

// Reads rows and checks the indices, even if rows have no elements.
void TakeCheckedRows(const KernelContext& run, const AxisExtents& axis, const RowIndices& indices,
                     int64_t count, int64_t element_bytes, const void* x, void* out) {
  if (axis.lines() == 0) {
    int32_t* const none = nullptr;
    return LaunchResolveRows(run, indices, count, none);
  }
  LaunchTakeRows(run, axis, indices, count, element_bytes, x, out);
}

// ---- lookup_table, lookup_table_v2

AxisExtents TableExtents(const Tensor& table) {
  return {.outer = 1, .length = table.shape()[0], .inner = table.shape()[1]};
}

std::unique_ptr<Kernel> PrepareLookup(PrepareContext& context) {
  return MakeIndexKernel(
      context, "Ids", /*accepts_fewer_rows=*/true,
      [padding = context.IntAttr("padding_idx"), bytes = SizeOf(context.Input("W").dtype),
       w = In<>(context, "W"), ids = In<>(context, "Ids"),
       out = Out<>(context, "Out")](const KernelContext& run) {
        const AxisExtents axis = TableExtents(w.tensor(run));
        TakeCheckedRows(run, axis, IndicesOf(run, ids, axis.length, padding), ids.count(run), bytes,
                        w(run), out(run));
        return axis.length;
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLookupGrad(PrepareContext& context) {
  const Shape& table = context.Output("W@GRAD").shape;
  CheckDeviceRows(context, table[0]);
  const CudaRowSums<T> sums(context, context.Input("Ids").shape.element_count(), table[1]);
  return MakeIndexKernel(
      context, "Ids", /*accepts_fewer_rows=*/true,
      [=, padding = context.IntAttr("padding_idx"), ids = In<>(context, "Ids"),
       grad = In<>(context, "Out@GRAD"), out = Out<>(context, "W@GRAD")](const KernelContext& run) {
        Tensor& result = out.tensor(run);
        const AxisExtents axis = TableExtents(result);
        const int64_t count = ids.count(run);
        LaunchResolveRows(run, IndicesOf(run, ids, axis.length, padding), count, sums.rows(run));
        MemoryMoverOf(run).ZeroBytes(run, result.raw_data(), result.byte_count());
        sums.Set(run, axis, count, grad(run), result.raw_data());
        return axis.length;
      });
}

// A slot for each id; those of padding are unused.
std::unique_ptr<Kernel> PrepareSparseLookupGrad(PrepareContext& context) {
  return MakeIndexKernel(
      context, "Ids", /*accepts_fewer_rows=*/true,
      [padding = context.IntAttr("padding_idx"), ids = In<>(context, "Ids"),
       grad = In<>(context, "Out@GRAD"), out = Out<>(context, "W@GRAD")](const KernelContext& run) {
        Tensor& rows = out.tensor(run);
        LaunchResolveRows(run, IndicesOf(run, ids, rows.height(), padding), ids.count(run),
                          rows.rows().data());
        CopyOnDevice(run, grad(run), rows.raw_data(), grad.tensor(run).byte_count());
        return rows.height();
      });
}

// ---- gather, index_select

// `axis_attr` names the attribute.
KernelFactory TakeFactory(const char* axis_attr) {
  return [axis_attr](PrepareContext& context) {
    const int rank = context.Input("X").shape.rank();
    return MakeIndexKernel(
        context, "Index", /*accepts_fewer_rows=*/true,
        [axis_index = NormalizeAxis(context.IntAttr(axis_attr), rank, context.op().type),
         bytes = SizeOf(context.Input("X").dtype), x = In<>(context, "X"),
         index = In<>(context, "Index"), out = Out<>(context, "Out")](const KernelContext& run) {
          const AxisExtents axis = ExtentsOfAxis(x.shape(run), axis_index);
          TakeCheckedRows(run, axis, IndicesOf(run, index, axis.length), index.count(run), bytes,
                          x(run), out(run));
          return axis.length;
        });
  };
}

template <typename T>
KernelFactory TakeGradFactory(const char* axis_attr) {
  return [axis_attr](PrepareContext& context) {
    const Shape& x = context.Output("X@GRAD").shape;
    const int axis_index = NormalizeAxis(context.IntAttr(axis_attr), x.rank(), context.op().type);
    const AxisExtents prepared = ExtentsOfAxis(x, axis_index);
    CheckDeviceRows(context, prepared.length);
    const CudaRowSums<T> sums(context, context.Input("Index").shape.element_count(),
                              prepared.lines());
    return MakeIndexKernel(
        context, "Index", /*accepts_fewer_rows=*/true,
        [=, index = In<>(context, "Index"), grad = In<>(context, "Out@GRAD"),
         out = Out<>(context, "X@GRAD")](const KernelContext& run) {
          const AxisExtents axis = ExtentsOfAxis(out.shape(run), axis_index);
          const int64_t count = index.count(run);
          LaunchResolveRows(run, IndicesOf(run, index, axis.length), count, sums.rows(run));
          MemoryMoverOf(run).ZeroBytes(run, out(run), out.tensor(run).byte_count());
          sums.Set(run, axis, count, grad(run), out(run));
          return axis.length;
        });
  };
}

// ---- gather_nd, scatter_nd_add

// RowsByTuple on a device. The shapes have passed its checks.
struct TupleRows {
  TupleRows(const Shape& x, const Shape& index) {
    tuple.width = static_cast<int>(index[index.rank() - 1]);
    axis = {.outer = 1,
            .length = x.element_count(0, tuple.width),
            .inner = x.element_count(tuple.width, x.rank())};
    for (int i = 0; i < tuple.width; ++i) tuple.dims[i] = x[i];
    count = index.element_count(0, index.rank() - 1);
  }

  void Resolve(const KernelContext& run, const In<>& index, int32_t* rows) const {
    if (count == 0) return;
    ResolveTuples<<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
        IndicesOf(run, index, axis.length), tuple, count, rows);
    CheckLaunch("rows of tuples");
  }

  TupleDims tuple;
  AxisExtents axis;
  int64_t count = 0;
};

// A kernel that refuses indices of tuples. `Function` returns the TupleRows of the run.
template <typename Function>
class TupleKernel final : public Kernel {
 public:
  TupleKernel(std::string op, bool accepts_fewer_rows, Function function)
      : op_(std::move(op)),
        accepts_fewer_rows_(accepts_fewer_rows),
        function_(std::move(function)) {}

  void Run(const KernelContext& run) override { tuple_ = function_(run).tuple; }
  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    const int64_t axis = fault.position % tuple_.width;
    Throw(ErrorCode::kOutOfRange, op_, ": index ", axis, " of tuple ",
          fault.position / tuple_.width, " in Index is ", fault.value, ", outside [0, ",
          tuple_.dims[axis], ")");
  }
  bool AcceptsFewerRows() const override { return accepts_fewer_rows_; }

 private:
  std::string op_;
  bool accepts_fewer_rows_;
  Function function_;
  TupleDims tuple_;
};

template <typename Function>
std::unique_ptr<Kernel> MakeTupleKernel(const OpContext& context, bool accepts_fewer_rows,
                                        Function function) {
  return std::make_unique<TupleKernel<Function>>(context.op().type, accepts_fewer_rows,
                                                 std::move(function));
}

std::unique_ptr<Kernel> PrepareGatherNd(PrepareContext& context) {
  const TupleRows prepared(context.Input("X").shape, context.Input("Index").shape);
  CheckDeviceRows(context, prepared.axis.length);
  return MakeTupleKernel(
      context, /*accepts_fewer_rows=*/true,
      [numbers = context.RequestWorkspace(prepared.count * int64_t{sizeof(int32_t)}),
       bytes = SizeOf(context.Input("X").dtype), x = In<>(context, "X"),
       index = In<>(context, "Index"), out = Out<>(context, "Out")](const KernelContext& run) {
        const TupleRows rows(x.shape(run), index.shape(run));
        auto* const found = static_cast<int32_t*>(run.workspace(numbers));
        rows.Resolve(run, index, found);
        LaunchTakeRows(run, rows.axis, FoundRows(found, rows.axis.length), rows.count, bytes,
                       x(run), out(run));
        return rows;
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGatherNdGrad(PrepareContext& context) {
  const TupleRows prepared(context.Output("X@GRAD").shape, context.Input("Index").shape);
  CheckDeviceRows(context, prepared.axis.length);
  const CudaRowSums<T> sums(context, prepared.count, prepared.axis.inner);
  return MakeTupleKernel(context, /*accepts_fewer_rows=*/true,
                         [=, index = In<>(context, "Index"), grad = In<>(context, "Out@GRAD"),
                          out = Out<>(context, "X@GRAD")](const KernelContext& run) {
                           const TupleRows rows(out.shape(run), index.shape(run));
                           rows.Resolve(run, index, sums.rows(run));
                           MemoryMoverOf(run).ZeroBytes(run, out(run),
                                                        out.tensor(run).byte_count());
                           sums.Set(run, rows.axis, rows.count, grad(run), out(run));
                           return rows;
                         });
}

template <typename T>
std::unique_ptr<Kernel> PrepareScatterNdAdd(PrepareContext& context) {
  const TupleRows rows(context.Input("X").shape, context.Input("Index").shape);
  CheckDeviceRows(context, rows.axis.length);
  const CudaRowSums<T> sums(context, rows.count, rows.axis.inner);
  return MakeTupleKernel(
      context, /*accepts_fewer_rows=*/false,
      [=, x = In<>(context, "X"), index = In<>(context, "Index"),
       updates = In<>(context, "Updates"), out = Out<>(context, "Out")](const KernelContext& run) {
        rows.Resolve(run, index, sums.rows(run));
        MemoryMoverOf(run).CopyBytes(run, x(run), out(run), out.tensor(run).byte_count());
        sums.Add(run, rows.axis, rows.count, updates(run), out(run));
        return rows;
      });
}

std::unique_ptr<Kernel> PrepareScatterNdAddGrad(PrepareContext& context) {
  const TupleRows rows(context.Input("Out@GRAD").shape, context.Input("Index").shape);
  CheckDeviceRows(context, rows.axis.length);
  return MakeTupleKernel(
      context, /*accepts_fewer_rows=*/false,
      [=, numbers = context.RequestWorkspace(rows.count * int64_t{sizeof(int32_t)}),
       bytes = SizeOf(context.Input("Out@GRAD").dtype), index = In<>(context, "Index"),
       grad = In<>(context, "Out@GRAD"), x = Out<>(context, "X@GRAD"),
       updates = Out<>(context, "Updates@GRAD")](const KernelContext& run) {
        if (updates.is_there()) {
          auto* const found = static_cast<int32_t*>(run.workspace(numbers));
          rows.Resolve(run, index, found);
          LaunchTakeRows(run, rows.axis, FoundRows(found, rows.axis.length), rows.count, bytes,
                         grad(run), updates(run));
        }
        if (x.is_there()) {
          MemoryMoverOf(run).CopyBytes(run, grad(run), x(run), grad.tensor(run).byte_count());
        }
        return rows;
      });
}

// ---- scatter

template <typename T>
std::unique_ptr<Kernel> PrepareScatter(PrepareContext& context) {
  const AxisExtents axis = ExtentsOfAxis(context.Input("X").shape, 0);
  CheckDeviceRows(context, axis.length);
  const int64_t count = context.Input("Ids").shape.element_count();
  const bool overwrite = context.Attr<bool>("overwrite");
  const In<> x(context, "X");
  const In<> ids(context, "Ids");
  const In<> updates(context, "Updates");
  const Out<> out(context, "Out");
  const auto start = [=](const KernelContext& run, int32_t* rows) {
    LaunchResolveRows(run, IndicesOf(run, ids, axis.length), count, rows);
    MemoryMoverOf(run).CopyBytes(run, x(run), out(run), out.tensor(run).byte_count());
  };
  if (!overwrite) {
    return MakeIndexKernel(
        context, "Ids", /*accepts_fewer_rows=*/false,
        [=, sums = CudaRowSums<T>(context, count, axis.inner)](const KernelContext& run) {
          start(run, sums.rows(run));
          sums.Set(run, axis, count, updates(run), out(run));
          return axis.length;
        });
  }
  return MakeIndexKernel(context, "Ids", /*accepts_fewer_rows=*/false,
                         [=, sort = RowSort(context, count)](const KernelContext& run) {
                           start(run, sort.rows(run));
                           if (count > 0) {
                             LaunchLastRows<LastRow::kOverwrites>(
                                 run, sort.Sort(run, count, axis.length),
                                 axis.inner * int64_t{sizeof(T)}, updates(run), out(run));
                           }
                           return axis.length;
                         });
}

std::unique_ptr<Kernel> PrepareScatterGrad(PrepareContext& context) {
  const TensorMeta& grad = context.Input("Out@GRAD");
  const AxisExtents axis = ExtentsOfAxis(grad.shape, 0);
  CheckDeviceRows(context, axis.length);
  const int64_t count = context.Input("Ids").shape.element_count();
  const RowSort sort(context, count);
  return MakeIndexKernel(
      context, "Ids", /*accepts_fewer_rows=*/false,
      [=, bytes = SizeOf(grad.dtype), overwrite = context.Attr<bool>("overwrite"),
       ids = In<>(context, "Ids"), from = In<>(context, "Out@GRAD"), x = Out<>(context, "X@GRAD"),
       updates = Out<>(context, "Updates@GRAD")](const KernelContext& run) {
        const RowIndices indices = IndicesOf(run, ids, axis.length);
        LaunchResolveRows(run, indices, count, sort.rows(run));
        // First, since X@GRAD may be Out@GRAD.
        if (updates.is_there() && !overwrite) {
          LaunchTakeRows(run, axis, indices, count, bytes, from(run), updates(run));
        }
        if (count > 0) {
          const SortedRows sorted = sort.Sort(run, count, axis.length);
          if (updates.is_there() && overwrite) {
            LaunchLastRows<LastRow::kIsRead>(run, sorted, axis.inner * bytes, from(run),
                                             updates(run));
          }
          if (x.is_there()) {
            MemoryMoverOf(run).CopyBytes(run, from(run), x(run), x.tensor(run).byte_count());
            LaunchLastRows<LastRow::kIsZeroed>(run, sorted, axis.inner * bytes, x(run), x(run));
          }
        } else if (x.is_there()) {
          MemoryMoverOf(run).CopyBytes(run, from(run), x(run), from.tensor(run).byte_count());
        }
        return axis.length;
      });
}

}  // namespace

void RegisterIndexedRowsCuda(OpRegistry& registry) {
  for (const StaticText type : {StaticText("lookup_table"), StaticText("lookup_table_v2")}) {
    const auto add = [&]<typename... Ts>() {
      (registry.AddCudaKernel(type, kDTypeOf<Ts>, PrepareLookup), ...);
      (registry.AddCudaKernel(StrCat(type, "_grad"), kDTypeOf<Ts>, PrepareLookupGrad<Ts>), ...);
    };
    add.template operator()<float, double, BFloat16, Float16>();
    registry.AddSelectedRowsKernels<float, double, BFloat16, Float16>(
        StrCat(type, "_grad"),
        [=]<typename>(PrepareContext& context) { return PrepareSparseLookupGrad(context); },
        PlaceKind::kCuda);
  }
  AddMovingKernels(registry, "gather", TakeFactory("axis"));
  AddMovingKernels(registry, "index_select", TakeFactory("dim"));
  AddMovingKernels(registry, "gather_nd", PrepareGatherNd);
  AddMovingKernels(registry, "scatter_nd_add_grad", PrepareScatterNdAddGrad);
  ForEachSumType([&]<typename T>(DType dtype) {
    registry.AddCudaKernel("gather_grad", dtype, TakeGradFactory<T>("axis"));
    registry.AddCudaKernel("index_select_grad", dtype, TakeGradFactory<T>("dim"));
    registry.AddCudaKernel("gather_nd_grad", dtype, PrepareGatherNdGrad<T>);
    registry.AddCudaKernel("scatter", dtype, PrepareScatter<T>);
    registry.AddCudaKernel("scatter_grad", dtype, PrepareScatterGrad);
    registry.AddCudaKernel("scatter_nd_add", dtype, PrepareScatterNdAdd<T>);
  });
}

}  // namespace skiff
