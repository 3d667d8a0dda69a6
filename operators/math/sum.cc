// sum: Out = X[0] + X[1] + …, any number of tensors of one shape.
// Source: Fluid's sum; the gradient of each input is dOut (a scale by 1). If all inputs are
// selected rows, so is Out: the rows of the inputs, one after the other. If one is dense, they are
// added to it.
#include <algorithm>
#include <cstring>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/selected_rows.h"
#include "operators/common/wide_float32.h"

namespace skiff {
namespace {

// Returns the number of slots of all inputs, which are selected rows, or -1 if it is unknown.
int64_t SlotCount(const OpContext& context) {
  int64_t count = 0;
  for (const TensorMeta& x : context.inputs()) {
    if (x.shape[0] < 0) return -1;
    count = AddCounts(count, x.shape[0]);
  }
  return count;
}

void Infer(OpContext& context) {
  const size_t count = context.InputCount("X");
  SKIFF_ENFORCE(count > 0, kInvalidArgument, "sum: no inputs, expected at least one");
  Shape shape = context.Input("X").dense_shape();
  const DType dtype = context.Input("X").dtype;
  SKIFF_ENFORCE(!IsWideFloat32(context) || dtype == DType::kFloat64, kInvalidArgument,
                "sum: wide_float32 = true and input 0 is ", dtype, ", expected float64");
  for (size_t i = 0; i < count; ++i) {
    SKIFF_ENFORCE(!IsWideFloat32(context) || !context.Input("X", i).is_selected_rows(),
                  kInvalidArgument, "sum: wide_float32 = true and input ", i,
                  " is selected rows, expected a dense tensor");
  }
  for (size_t i = 1; i < count; ++i) {
    const TensorMeta& x = context.Input("X", i);
    const Shape other = x.dense_shape();
    SKIFF_ENFORCE(other.rank() == shape.rank(), kInvalidArgument, "sum: input ", i, " is of shape ",
                  other, ", expected ", shape, " as input 0");
    SKIFF_ENFORCE(x.dtype == dtype, kInvalidArgument, "sum: input ", i, " is ", x.dtype,
                  ", expected ", dtype, " as input 0");
    for (int axis = 0; axis < shape.rank(); ++axis) {
      shape[axis] =
          MergeDims(shape[axis], other[axis], StrCat("sum: dim ", axis, " of inputs 0 and ", i));
    }
  }
  context.SetOutputLike("Out", "X");
  if (!std::ranges::all_of(context.inputs(), &TensorMeta::is_selected_rows)) {
    context.SetOutput("Out", shape, dtype);
    return;
  }
  const int64_t height = shape[0];
  shape[0] = SlotCount(context);
  context.SetSelectedRows("Out", shape, dtype, height);
}

// Returns a scale op for each input whose gradient is requested.
std::vector<Op> Gradient(const GradContext& context) {
  std::vector<Op> ops;
  for (const std::string& name : context.InputGrad("X")) {
    if (name == kEmptyVarName) continue;
    Op op("scale");
    op.SetInput("X", context.OutputGrad("Out"));
    op.SetOutput("Out", {name});
    op.SetAttr("scale", 1.0f);
    op.SetAttr("bias", 0.0f);
    op.SetAttr("bias_after_scale", true);
    ops.push_back(std::move(op));
  }
  return ops;
}

// The number of elements that are summed before they are written, so that Out may be any of the
// inputs. The sum of a block stays in the first-level cache, so each input is read from memory
// once.
constexpr int64_t kBlock = 2048;
constexpr int64_t kGrain = 8 * kBlock;

template <typename T>
void AddAll(const KernelContext& run, const std::vector<In<T>>& inputs, const Out<T>& out,
            int64_t begin, int64_t end) {
  T sum[kBlock];
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t count = std::min(kBlock, end - i);
    const T* first = inputs[0](run) + i;
    for (size_t k = 1; k < inputs.size(); ++k) {
      const bool is_last = k + 1 == inputs.size();
      T* to = is_last ? out(run) + i : sum;
      AddArrays(k == 1 ? first : sum, inputs[k](run) + i, to, count);
    }
    if (inputs.size() == 1) {
      std::memmove(out(run) + i, first, static_cast<size_t>(count) * sizeof(T));
    }
  }
}

// Adds numbers that are float32 where that holds them (wide_float32.h): a few, so by one thread.
// Out may be any of the inputs.
template <typename T>
std::unique_ptr<Kernel> PrepareWide(const std::vector<In<T>>& inputs, const Out<T>& out) {
  std::vector<const double*> xs(inputs.size());
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    std::ranges::transform(inputs, xs.begin(),
                           [&](const In<T>& x) { return x.template as<double>(run); });
    const Tensor& sums = out.tensor(run);
    auto* to = out.template as<double>(run);
    for (int64_t i = 0; i < StorageElements(sums.shape(), sums.layout()); ++i) {
      double sum = xs[0][i];
      for (size_t k = 1; k < xs.size(); ++k) sum = NearestFloat32(sum + xs[k][i]);
      to[i] = sum;
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  std::vector<In<T>> inputs;
  for (size_t i = 0; i < context.InputCount("X"); ++i) inputs.emplace_back(context, "X", i);
  const Out<T> out(context, "Out");
  if (IsWideFloat32(context)) return PrepareWide(inputs, out);
  return MakeRowsKernel([=](const KernelContext& run) {
    const Tensor& sum = out.tensor(run);
    ParallelFor(StorageElements(sum.shape(), sum.layout()), kGrain,
                [&](int64_t begin, int64_t end) { AddAll<T>(run, inputs, out, begin, end); });
  });
}

// Copies the rows of all inputs to `to`, which may be one of them if all others are empty.
template <typename T>
void Concatenate(const KernelContext& run, const std::vector<In<T>>& inputs, Tensor* to) {
  T* values = to->data<T>();
  int64_t* rows = to->rows().data();
  for (const In<T>& input : inputs) {
    const Tensor& x = input.tensor(run);
    const std::span<const int64_t> numbers = x.rows();
    if (numbers.empty()) continue;
    std::memmove(values, x.raw_data(), static_cast<size_t>(x.element_count()) * sizeof(T));
    std::memmove(rows, numbers.data(), numbers.size_bytes());
    values += x.element_count();
    rows += numbers.size();
  }
}

// Prepares the sum of inputs of which some are selected rows.
template <typename T>
std::unique_ptr<Kernel> PrepareRows(PrepareContext& context) {
  std::vector<In<T>> dense;
  std::vector<In<T>> selected;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const bool is_selected = context.Input("X", i).is_selected_rows();
    (is_selected ? selected : dense).emplace_back(context, "X", i);
  }
  const Out<T> out(context, "Out");
  if (dense.empty()) {
    return MakeRowsKernel(
        [=](const KernelContext& run) { Concatenate<T>(run, selected, &out.tensor(run)); });
  }
  return MakeRowsKernel([=](const KernelContext& run) {
    ParallelFor(out.count(run), kGrain,
                [&](int64_t begin, int64_t end) { AddAll<T>(run, dense, out, begin, end); });
    for (const In<T>& input : selected) AddSelectedRows(input.tensor(run), out(run));
  });
}

// Accepts any layout that all tensors have: the sum of the padding is zero.
bool LayoutsAgree(const OpContext& context) {
  const Layout layout = context.Input("X").layout;
  const auto same = [layout](const TensorMeta& meta) { return meta.layout == layout; };
  return std::all_of(context.inputs().begin(), context.inputs().end(), same) &&
         std::all_of(context.outputs().begin(), context.outputs().end(), same);
}

template <typename T>
void AddKernelOf(OpRegistry& registry) {
  registry.AddKernel("sum", {.dtype = kDTypeOf<T>, .prepare = Prepare<T>, .accepts = LayoutsAgree});
}

}  // namespace

void RegisterSum(OpRegistry& registry) {
  registry.Add(
      {.type = "sum",
       .doc = "Out = X[0] + X[1] + ..., tensors of one shape. Fluid's sum. If all are selected "
              "rows, Out has them one after the other, repeated ones too; if one is dense, "
              "so is Out.",
       .inputs =
           {{.name = "X", .doc = "One tensor or more.", .duplicable = true, .selected_rows = true}},
       .outputs = {{.name = "Out", .doc = "Of the inputs' shape.", .selected_rows = true}},
       .attrs = {WideFloat32Attr()},
       .infer = Infer,
       .grad = Gradient,
       .in_place = {{"X", "Out"}},
       .precision = Precision::kFollow,
       .layout_rule = LayoutRule::kSame,
       .layout_slots = {"X", "Out"},
       .zero_preserving = true,
       .elementwise = true});
  registry.AddSelectedRowsKernels<float, double>(
      "sum", []<typename T>(PrepareContext& context) { return PrepareRows<T>(context); });
  AddKernelOf<float>(registry);
  AddKernelOf<double>(registry);
  AddKernelOf<int32_t>(registry);
  AddKernelOf<int64_t>(registry);
}

}  // namespace skiff
