// top_k: the k largest values of each row (the last dim) of X, in descending order, and their
// places in the row. Of equal values the one further to the front comes first; NaN counts as the
// largest.
// Source: Fluid's top_k; dX is dOut at the places found, 0 elsewhere.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

constexpr int64_t kGrainElements = 16384;

void CheckK(const Attribute& value) {
  const int32_t k = std::get<int32_t>(value);
  SKIFF_ENFORCE(k >= 1, kInvalidArgument, "top_k: k = ", k, ", expected at least 1");
}

void CheckKOfRow(int64_t k, const Shape& x) {
  const int64_t columns = x.dim(-1);
  SKIFF_ENFORCE(k >= 1 && (columns < 0 || k <= columns), kInvalidArgument, "top_k: k = ", k,
                " is outside [1, ", columns, "] for X of shape ", x);
}

Shape OutputShape(const Shape& x, int64_t k) {
  Shape out = x;
  out[x.rank() - 1] = k;
  return out;
}

void Infer(OpContext& context) {
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() >= 1, kInvalidArgument, "top_k: X of shape ", x,
                ", expected at least one dim");
  int64_t k = -1;
  if (context.HasInput("K")) {
    const TensorMeta& meta = context.Input("K");
    SKIFF_ENFORCE(meta.dtype == DType::kInt32 || meta.dtype == DType::kInt64, kInvalidArgument,
                  "top_k: K is ", meta.dtype, ", expected int32 or int64");
    CheckOneElement(context, "K");
  } else {
    k = context.IntAttr("k");
    CheckKOfRow(k, x);
  }
  context.SetOutputLike("Out", "X");
  context.SetOutputLike("Indices", "X");
  context.SetOutput("Out", OutputShape(x, k), context.Input("X").dtype);
  context.SetOutput("Indices", OutputShape(x, k), DType::kInt64);
}

void InferGrad(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const Shape& indices = context.Input("Indices").shape;
  SKIFF_ENFORCE(x.shape.rank() >= 1 && indices.rank() == x.shape.rank(), kInvalidArgument,
                "top_k_grad: Indices of shape ", indices, " and X of shape ", x.shape,
                ", expected one rank of at least 1");
  const int64_t k = indices.dim(-1);
  if (k >= 0) CheckKOfRow(k, x.shape);
  CheckInputLike(context, "Indices", OutputShape(x.shape, k), DType::kInt64);
  CheckInputLike(context, "Out@GRAD", OutputShape(x.shape, k), x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

// Whether (a, at i) stands before (b, at j).
template <typename T>
bool StandsBefore(T a, int64_t i, T b, int64_t j) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
  }
  if (a != b && !(a < b) && !(b < a)) return i < j;  // two NaN
  return a > b || (a == b && i < j);
}

// A heap of the best elements so far, in the row's own outputs: the worst of them is at the root.
template <typename T>
class RowHeap {
 public:
  RowHeap(T* values, int64_t* indices) : values_(values), indices_(indices) {}

  // Restores the order below `root` among the first `size` elements.
  void SiftDown(int64_t root, int64_t size) {
    for (int64_t child = 2 * root + 1; child < size; child = 2 * root + 1) {
      if (child + 1 < size && Before(child, child + 1)) ++child;
      if (!Before(root, child)) return;
      Swap(root, child);
      root = child;
    }
  }
  bool RootIsWorseThan(T value, int64_t index) const {
    return StandsBefore(value, index, values_[0], indices_[0]);
  }
  void Set(int64_t position, T value, int64_t index) {
    values_[position] = value;
    indices_[position] = index;
  }
  void Swap(int64_t i, int64_t j) {
    std::swap(values_[i], values_[j]);
    std::swap(indices_[i], indices_[j]);
  }

 private:
  bool Before(int64_t i, int64_t j) const {
    return StandsBefore(values_[i], indices_[i], values_[j], indices_[j]);
  }

  T* values_;
  int64_t* indices_;
};

template <typename T>
void SelectRow(const T* x, int64_t columns, int64_t k, T* values, int64_t* indices) {
  RowHeap<T> heap(values, indices);
  for (int64_t i = 0; i < k; ++i) heap.Set(i, x[i], i);
  for (int64_t i = k / 2; i-- > 0;) heap.SiftDown(i, k);
  for (int64_t i = k; i < columns; ++i) {
    if (!heap.RootIsWorseThan(x[i], i)) continue;
    heap.Set(0, x[i], i);
    heap.SiftDown(0, k);
  }
  for (int64_t size = k - 1; size > 0; --size) {
    heap.Swap(0, size);
    heap.SiftDown(0, size);
  }
}

template <typename T>
void SelectRows(const T* x, int64_t rows, int64_t columns, int64_t k, T* values, int64_t* indices) {
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(columns, 1));
  ParallelFor(rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      SelectRow(x + row * columns, columns, k, values + row * k, indices + row * k);
    }
  });
}

int64_t ReadK(const Tensor& k) {
  return k.dtype() == DType::kInt32 ? int64_t{*k.data<int32_t>()} : *k.data<int64_t>();
}

// Where K is a tensor, the shape of the outputs is found in the run, and so is their storage.
template <typename T>
std::unique_ptr<Kernel> PrepareDynamic(const PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int k_input = context.InputIndex("K");
  const int out = context.OutputIndex("Out");
  const int indices = context.OutputIndex("Indices");
  return MakeKernel([=](const KernelContext& run) {
    const Tensor& from = run.input(x);
    const int64_t k = ReadK(run.input(k_input));
    CheckKOfRow(k, from.shape());
    const Shape shape = OutputShape(from.shape(), k);
    Tensor values(shape, from.dtype());
    Tensor places(shape, DType::kInt64);
    SelectRows(from.data<T>(), shape.element_count(0, shape.rank() - 1), from.shape().dim(-1), k,
               values.data<T>(), places.data<int64_t>());
    if (out >= 0) run.output(out) = values;
    if (indices >= 0) run.output(indices) = places;
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  if (context.HasInput("K")) return PrepareDynamic<T>(context);
  const Shape& shape = context.Input("X").shape;
  const int64_t columns = shape.dim(-1);
  const int64_t rows = shape.element_count(0, shape.rank() - 1);
  const int64_t k = context.IntAttr("k");
  CheckKOfRow(k, shape);
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  const int indices = context.OutputIndex("Indices");
  const int64_t count = MultiplyCounts(rows, k);
  const int scratch_out = out >= 0 ? -1 : context.RequestWorkspace(ByteCount(count, kDTypeOf<T>));
  const int scratch_indices =
      indices >= 0 ? -1 : context.RequestWorkspace(ByteCount(count, DType::kInt64));
  return MakeKernel([=](const KernelContext& run) {
    T* values = out >= 0 ? run.output(out).data<T>() : static_cast<T*>(run.workspace(scratch_out));
    int64_t* places = indices >= 0 ? run.output(indices).data<int64_t>()
                                   : static_cast<int64_t*>(run.workspace(scratch_indices));
    SelectRows(run.input(x).data<T>(), rows, columns, k, values, places);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const Shape& shape = context.Input("X").shape;
  const int64_t columns = shape.dim(-1);
  const int64_t rows = shape.element_count(0, shape.rank() - 1);
  const int indices = context.InputIndex("Indices");
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  return MakeKernel([=](const KernelContext& run) {
    // With K as a tensor, k is known only now.
    const int64_t k = run.input(indices).shape().dim(-1);
    const int64_t* places = run.input(indices).data<int64_t>();
    const T* from = run.input(gradient).data<T>();
    T* to = run.output(dx).data<T>();
    const auto is_outside = [=](int64_t place) { return place < 0 || place >= columns; };
    const int64_t* bad = std::find_if(places, places + rows * k, is_outside);
    SKIFF_ENFORCE(bad == places + rows * k, kOutOfRange, "top_k_grad: Indices[", bad - places,
                  "] = ", *bad, " is outside [0, ", columns, ")");
    const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(columns, 1));
    ParallelFor(rows, grain, [=](int64_t begin, int64_t end) {
      std::fill(to + begin * columns, to + end * columns, T{0});
      for (int64_t i = begin * k; i < end * k; ++i) to[i / k * columns + places[i]] = from[i];
    });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "k",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{1}),
           .doc = "How many values of a row; ignored where K is given.",
           .check = CheckK}};
}

}  // namespace

void RegisterTopK(OpRegistry& registry) {
  registry.Add({.type = "top_k",
                .doc = "The k largest values of each row of X, in descending order, and their "
                       "places. Fluid's top_k.",
                .inputs = {{.name = "X", .doc = "Of rank 1 or more; the last dim makes the rows."},
                           {.name = "K",
                            .doc = "k, as an integer tensor.",
                            .dispensable = true,
                            .checks_data = true}},
                .outputs = {{.name = "Out", .doc = "The values, [..., k].", .dispensable = true},
                            {.name = "Indices",
                             .doc = "Their places in the row, int64.",
                             .dispensable = true}},
                .attrs = Attributes(),
                .infer = Infer,
                .grad = GradOp("top_k_grad", {"X", "Indices", "Out@GRAD"}, {"X@GRAD"}),
                .data_dependent_shape = true});
  registry.Add({.type = "top_k_grad",
                .doc = "The gradient of top_k: dX is dOut at the places found, 0 elsewhere.",
                .inputs = {{.name = "X", .doc = "The input of top_k.", .shape_only = true},
                           {.name = "Indices", .doc = "The places found.", .checks_data = true},
                           {.name = "Out@GRAD", .doc = "The gradient of Out."}},
                .outputs = {{.name = "X@GRAD", .doc = "Of X's shape."}},
                .attrs = Attributes(),
                .infer = InferGrad,
                .no_gradient_reason = "second derivatives are not provided",
                .kernel_dtype_slot = "Out@GRAD",
                .data_checked_by = "top_k"});
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "top_k", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "top_k_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
