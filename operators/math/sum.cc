// sum: Out = X[0] + X[1] + …, any number of tensors of one shape.
// Source: Fluid's sum; the gradient of each input is dOut (a scale by 1).
#include <algorithm>
#include <cstring>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/reduce.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const size_t count = context.InputCount("X");
  SKIFF_ENFORCE(count > 0, kInvalidArgument, "sum: no inputs, expected at least one");
  Shape shape = context.Input("X").shape;
  const DType dtype = context.Input("X").dtype;
  for (size_t i = 1; i < count; ++i) {
    const TensorMeta& x = context.Input("X", i);
    SKIFF_ENFORCE(x.shape.rank() == shape.rank(), kInvalidArgument, "sum: input ", i,
                  " is of shape ", x.shape, ", expected ", shape, " as input 0");
    SKIFF_ENFORCE(x.dtype == dtype, kInvalidArgument, "sum: input ", i, " is ", x.dtype,
                  ", expected ", dtype, " as input 0");
    for (int axis = 0; axis < shape.rank(); ++axis) {
      shape[axis] =
          MergeDims(shape[axis], x.shape[axis], StrCat("sum: dim ", axis, " of inputs 0 and ", i));
    }
  }
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", shape, dtype);
}

// One scale op for each input that wants its gradient.
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

// Elements that are added up before they are written, so that Out may be any of the inputs.
constexpr int64_t kBlock = 2048;
constexpr int64_t kGrain = 8 * kBlock;

template <typename T>
void AddAll(const KernelContext& run, const std::vector<int>& inputs, int out, int64_t begin,
            int64_t end) {
  T sum[kBlock];
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t count = std::min(kBlock, end - i);
    const T* first = run.input(inputs[0]).data<T>() + i;
    for (size_t k = 1; k < inputs.size(); ++k) {
      const bool is_last = k + 1 == inputs.size();
      T* to = is_last ? run.output(out).data<T>() + i : sum;
      AddArrays(k == 1 ? first : sum, run.input(inputs[k]).data<T>() + i, to, count);
    }
    if (inputs.size() == 1) {
      std::memmove(run.output(out).data<T>() + i, first, static_cast<size_t>(count) * sizeof(T));
    }
  }
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  std::vector<int> inputs;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    inputs.push_back(context.InputIndex("X", i));
  }
  const int out = context.OutputIndex("Out");
  const TensorMeta& meta = context.Output("Out");
  const int64_t count = StorageElements(meta.shape, meta.layout);
  return MakeKernel([=](const KernelContext& run) {
    ParallelFor(count, kGrain,
                [&](int64_t begin, int64_t end) { AddAll<T>(run, inputs, out, begin, end); });
  });
}

// Any layout, if all tensors have it: the padding adds up to zero.
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
  registry.Add({.type = "sum",
                .doc = "Out = X[0] + X[1] + ..., tensors of one shape. Fluid's sum.",
                .inputs = {{.name = "X", .doc = "One tensor or more.", .duplicable = true}},
                .outputs = {{.name = "Out", .doc = "Of the inputs' shape."}},
                .infer = Infer,
                .grad = Gradient,
                .in_place = {{"X", "Out"}},
                .layout_rule = LayoutRule::kSame,
                .layout_slots = {"X", "Out"},
                .zero_preserving = true,
                .elementwise = true});
  AddKernelOf<float>(registry);
  AddKernelOf<double>(registry);
  AddKernelOf<int32_t>(registry);
  AddKernelOf<int64_t>(registry);
}

}  // namespace skiff
