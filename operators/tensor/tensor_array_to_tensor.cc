// tensor_array_to_tensor: the elements of an array, joined along an axis.
//
// Source: Fluid's tensor_array_to_tensor. The elements must be there from 0 on and differ in
// nothing but their extent at `axis`; with use_stack not even there.
//
// Gradient: each element's part of Out@GRAD, which is added to the array X@GRAD.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "framework/tensor/tensor_array.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/tensor_array_access.h"

namespace skiff {
namespace {

// How the elements lie in the joined tensor.
struct Join {
  Join(const OpContext& context, int rank)
      : stacks(context.Attr<bool>("use_stack")),
        axis(NormalizeAxis(context.IntAttr("axis"), rank + (stacks ? 1 : 0),
                           context.op().type + ": axis")) {}

  // Returns the extent that the element takes at `axis`.
  int64_t ExtentOf(const Tensor& element) const { return stacks ? 1 : element.shape()[axis]; }
  // Returns the elements of one run of bytes that lie together, for an extent of 1.
  int64_t InnerCount(const Shape& element) const {
    return element.element_count(stacks ? axis : axis + 1, element.rank());
  }

  bool stacks;
  int axis;
};

void CheckElement(const Join& join, const Tensor& first, const Tensor& element, int64_t index) {
  Shape expected = first.shape();
  if (!join.stacks && element.shape().rank() == expected.rank()) {
    expected[join.axis] = element.shape()[join.axis];
  }
  SKIFF_ENFORCE(element.shape() == expected && element.dtype() == first.dtype(), kInvalidArgument,
                "tensor_array_to_tensor: element ", index, " is ", element.dtype(), " ",
                element.shape(), ", element 0 is ", first.dtype(), " ", first.shape(),
                join.stacks ? ": expected the same shape" : ": expected the same but at the axis");
}

// Returns the shape of elements of this shape, joined to `extent` at the axis.
Shape JoinedShape(const Join& join, const Shape& element, int64_t extent) {
  std::vector<int64_t> dims(element.dims().begin(), element.dims().end());
  if (join.stacks) dims.insert(dims.begin() + join.axis, extent);
  dims[static_cast<size_t>(join.axis)] = extent;
  return Shape(dims);
}

void Infer(OpContext& context) {
  const TensorMeta& element = ElementMeta(context, "X");
  const Join join(context, element.shape.rank());
  context.SetOutput("Out", JoinedShape(join, element.shape, -1), element.dtype);
  context.SetOutput("OutIndex", Shape({-1}), DType::kInt32);
}

// Dim 0 is that of the largest element, so only a run can compare it.
void InferGrad(OpContext& context) {
  const TensorMeta& element = ElementMeta(context, "X");
  Shape any_rows = element.shape;
  if (any_rows.rank() > 0) any_rows[0] = -1;
  CheckInputLike(context, "Out@GRAD", JoinedShape(Join(context, any_rows.rank()), any_rows, -1),
                 element.dtype);
  context.SetOutput("X@GRAD", element.shape, element.dtype);
}

// Returns the shape of the elements when they are joined. Throws an Error for elements that don't
// fit together, and for an array without any, of which nobody can tell the shape of `joined`.
Shape CheckedShape(const Join& join, const TensorArray& array, const std::string& joined) {
  SKIFF_ENFORCE(array.size() > 0, kOutOfRange,
                "tensor_array_to_tensor: X has no elements to make \"", joined, "\" of");
  int64_t extent = 0;
  for (int64_t i = 0; i < array.size(); ++i) {
    CheckElement(join, array.At(0), array.At(i), i);
    extent += join.ExtentOf(array.At(i));
  }
  return JoinedShape(join, array.At(0).shape(), extent);
}

// Calls copy(part, joined, bytes) for each run of bytes of an element and of the joined tensor.
template <typename Copy>
void ForEachRun(const Join& join, const Tensor& element, const Tensor& joined, int64_t offset,
                const Copy& copy) {
  const int64_t inner = join.InnerCount(element.shape()) * SizeOf(element.dtype());
  const int64_t run = join.ExtentOf(element) * inner;
  const int64_t stride = joined.shape()[join.axis] * inner;
  const int64_t runs = element.shape().element_count(0, join.axis);
  for (int64_t i = 0; i < runs; ++i) copy(i * run, i * stride + offset * inner, run);
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeKernel([x = In<>(context, "X"), out = Out<>(context, "Out"),
                     index = Out<>(context, "OutIndex"),
                     join = Join(context, context.Input("X").shape.rank()),
                     name = context.op().Output("Out").front()](const KernelContext& run) {
    const TensorArray& array = *x.tensor(run).array();
    const int64_t count = array.size();
    const Shape shape = CheckedShape(join, array, name);
    Tensor extents(Shape({count}), DType::kInt32);
    for (int64_t i = 0; i < count; ++i) {
      extents.data<int32_t>()[i] = static_cast<int32_t>(join.ExtentOf(array.At(i)));
    }
    Tensor joined(shape, array.At(0).dtype());
    int64_t offset = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Tensor& element = array.At(i);
      const auto* from = static_cast<const char*>(element.raw_data());
      auto* to = static_cast<char*>(joined.raw_data());
      ForEachRun(join, element, joined, offset, [&](int64_t part, int64_t place, int64_t bytes) {
        std::memcpy(to + place, from + part, static_cast<size_t>(bytes));
      });
      offset += join.ExtentOf(element);
    }
    out.tensor(run) = std::move(joined);
    if (index.is_there()) index.tensor(run) = std::move(extents);
  });
}

std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeKernel([x = In<>(context, "X"), out_grad = In<>(context, "Out@GRAD"),
                     x_grad = Out<>(context, "X@GRAD"),
                     join = Join(context, context.Input("X").shape.rank()),
                     name = context.op().Input("Out@GRAD").front(),
                     runs = std::vector<MemoryRun>()](const KernelContext& run) mutable {
    const TensorArray& array = *x.tensor(run).array();
    TensorArray& gradients = *x_grad.tensor(run).array();
    const Tensor& joined = out_grad.tensor(run);
    const Shape expected = CheckedShape(join, array, name);
    SKIFF_ENFORCE(joined.shape() == expected, kInvalidArgument,
                  "tensor_array_to_tensor_grad: Out@GRAD has the shape ", joined.shape(),
                  ", expected that of the joined elements of X, ", expected);
    const DType dtype = array.At(0).dtype();
    SKIFF_ENFORCE(joined.dtype() == dtype, kInvalidArgument,
                  "tensor_array_to_tensor_grad: Out@GRAD is ", joined.dtype(),
                  ", expected the dtype of the elements of X, ", dtype);
    runs.clear();
    int64_t offset = 0;
    for (int64_t i = 0; i < array.size(); ++i) {
      const Tensor& element = array.At(i);
      const Tensor* before = gradients.Find(i);
      if (before == nullptr) {
        Tensor& made = gradients.Make(i, element.shape(), element.dtype(), element.lod());
        ZeroBytes(made.raw_data(), made.byte_count());
      } else {
        SKIFF_ENFORCE(before->shape() == element.shape() && before->dtype() == dtype,
                      kInvalidArgument, "tensor_array_to_tensor_grad: element ", i,
                      " of X@GRAD is ", before->dtype(), " ", before->shape(),
                      ", expected that of X, ", dtype, " ", element.shape());
      }
      const auto* from = static_cast<const char*>(joined.raw_data());
      auto* sum = static_cast<char*>(gradients.At(i).raw_data());
      ForEachRun(join, element, joined, offset, [&](int64_t part, int64_t place, int64_t bytes) {
        runs.push_back({.from = from + place, .to = sum + part, .bytes = bytes});
      });
      offset += join.ExtentOf(element);
    }
    MemoryMoverOf(run).AddRuns(run, dtype, runs);
  });
}

}  // namespace

void RegisterTensorArrayToTensor(OpRegistry& registry) {
  OpDef def;
  def.type = "tensor_array_to_tensor";
  def.doc = "The elements of an array, joined along an axis.";
  def.inputs = {{.name = "X", .doc = "The array.", .checks_data = true, .array = true}};
  def.outputs = {{.name = "Out", .doc = "The elements in their order."},
                 {.name = "OutIndex",
                  .doc = "int32: the extent of each element at the axis.",
                  .dispensable = true}};
  def.attrs = {{.name = "axis",
                .type = AttrType::kInt,
                .default_value = 0,
                .doc = "Along which the elements are joined; negative from the back."},
               {.name = "use_stack",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Whether `axis` is a new axis, with an extent of 1 for each element."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.data_dependent_shape = true;
  OpDef grad = GradientOf(&def, {"X", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "Adds each element's part of Out@GRAD to an array of gradients.";
  grad.infer = InferGrad;
  // Nothing ties the extent of Out@GRAD to those of the elements that the forward op joined.
  grad.data_checked_by = {};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "tensor_array_to_tensor", Prepare);
  registry.Add(std::move(grad));
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "tensor_array_to_tensor_grad",
      []<typename>(PrepareContext& context) { return PrepareGrad(context); });
}

}  // namespace skiff
