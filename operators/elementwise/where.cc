// where: Out = X where Condition holds, else Y; all of one shape. Source: Fluid's where.
//
// X@GRAD = Out@GRAD where Condition holds, else 0; Y@GRAD = Out@GRAD where it doesn't, else 0.
#include <memory>

#include "framework/op/grad.h"
#include "operators/common/input_checks.h"
#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<bool> condition(context, "Condition");
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const bool* holds = condition(run);
    const T* from_x = x(run);
    const T* from_y = y(run);
    T* to = out(run);
    ParallelFor(x.count(run), kVectorGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // Reads both, so that the loop has no branch.
        const T if_true = from_x[i];
        const T if_false = from_y[i];
        to[i] = holds[i] ? if_true : if_false;
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<bool> condition(context, "Condition");
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const bool* holds = condition(run);
    const T* from = dout(run);
    T* to_x = dx(run);
    T* to_y = dy(run);
    ParallelFor(dout.count(run), kVectorGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // Read before anything is written: one of the results may share its storage.
        const T value = from[i];
        const bool is_of_x = holds[i];
        if (to_x != nullptr) to_x[i] = is_of_x ? value : T{0};
        if (to_y != nullptr) to_y[i] = is_of_x ? T{0} : value;
      }
    });
  });
}

}  // namespace

void RegisterWhere(OpRegistry& registry) {
  OpDef def;
  def.type = "where";
  def.doc = "Out = X where Condition holds, else Y.";
  def.inputs = {{.name = "Condition", .doc = "Bools."},
                {.name = "X", .doc = "Of Condition's shape."},
                {.name = "Y", .doc = "Of X's shape and dtype."}};
  def.outputs = {{.name = "Out", .doc = "Of X's shape and dtype."}};
  def.infer = [](OpContext& context) {
    const TensorMeta& condition = context.Input("Condition");
    SKIFF_ENFORCE(condition.dtype == DType::kBool, kInvalidArgument, context.op().type,
                  ": Condition is ", condition.dtype, ", expected bool");
    const DType dtype = context.Input("X").dtype;
    for (const char* slot : {"X", "Y"}) CheckInputLike(context, slot, condition.shape, dtype);
    context.SetOutputLike("Out", "X");
  };
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "X";
  def.in_place = {{"X", "Out"}, {"Y", "Out"}};
  def.zero_preserving = true;
  def.elementwise = true;

  OpDef grad = GradientOf(&def, {"Condition", "Out@GRAD", ForShape("X"), ForShape("Y")},
                          {"X@GRAD", "Y@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD where Condition holds, else 0; Y@GRAD = the rest of Out@GRAD.";
  grad.in_place = {{"Out@GRAD", "X@GRAD"}, {"Out@GRAD", "Y@GRAD"}};
  grad.zero_preserving = true;
  grad.elementwise = true;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t, bool>(
      "where", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "where_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
