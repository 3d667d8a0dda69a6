// clip: Out = min(max(X, min), max); NaN stays NaN. Source: Fluid's clip. The tensors Min and Max
// override the attributes.
//
// X@GRAD = Out@GRAD where min < X < max, else 0.
//
// If X is selected rows, repeated rows are added first, as in Fluid: Out has the sum in the slot of
// the first of them, and the other slots are unused. Absent rows are zeros and must stay so, hence
// min <= 0 <= max.
#include <string>
#include <utility>

#include "framework/op/grad.h"
#include "operators/common/input_checks.h"
#include "operators/common/integer.h"
#include "operators/common/merged_rows.h"
#include "operators/common/selected_rows.h"
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/clip.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/elementwise/kernels/clip_formula-inl.h"

void ClipLoop(const float* x, float low, float high, float* out, int64_t count) {
  UnaryLoop(
      [=]<class D, class V>(D, V v) HWY_ATTR {
        using L = Lanes<D>;
        return Clipped(L(v), L(low), L(high)).v;
      },
      x, out, count);
}

void ClipGradLoop(const float* x, const float* dout, float low, float high, float* dx,
                  int64_t count) {
  BinaryLoop(
      [=]<class D, class V>(D, V v, V dv) HWY_ATTR {
        using L = Lanes<D>;
        return ClippedGradient(L(v), L(dv), L(low), L(high)).v;
      },
      x, 1, dout, 1, dx, count);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

#include "operators/elementwise/kernels/clip_formula-inl.h"

HWY_EXPORT(ClipLoop);
HWY_EXPORT(ClipGradLoop);

template <typename T>
struct Bounds {
  T low;
  T high;
};

template <typename T>
void CheckOrder(std::string_view type, const Bounds<T>& bounds) {
  SKIFF_ENFORCE(bounds.low <= bounds.high, kInvalidArgument, type, ": min = ", bounds.low,
                " and max = ", bounds.high, ", expected min <= max");
}

// The bounds of a prepared op, from tensors or attributes.
template <typename T>
class BoundSource {
 public:
  explicit BoundSource(const OpContext& context)
      : type_(context.def().type),
        min_(context, "Min"),
        max_(context, "Max"),
        attrs_{FromFloat<T>(context.Attr<float>("min")), FromFloat<T>(context.Attr<float>("max"))} {
  }

  // Returns the bounds of a run. Throws Error if the tensors hold a Min above Max.
  Bounds<T> Read(const KernelContext& run) const {
    const Bounds<T> bounds{min_.is_there() ? *min_(run) : attrs_.low,
                           max_.is_there() ? *max_(run) : attrs_.high};
    CheckOrder(type_, bounds);
    return bounds;
  }

 private:
  StaticText type_;
  In<T> min_;
  In<T> max_;
  Bounds<T> attrs_;
};

template <typename T>
void ClipArray(const T* x, const Bounds<T>& bounds, T* out, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(ClipLoop)(x, bounds.low, bounds.high, out, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = Clipped(x[i], bounds.low, bounds.high);
  }
}

template <typename T>
void ClipGradArray(const T* x, const T* dout, const Bounds<T>& bounds, T* dx, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(ClipGradLoop)(x, dout, bounds.low, bounds.high, dx, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = ClippedGradient(x[i], dout[i], bounds.low, bounds.high);
  }
}

template <typename T>
void AddClipKernel(OpRegistry& registry) {
  AddElementwiseKernel<T>(registry, "clip", {"X", "Out"}, [](PrepareContext& context) {
    const BoundSource<T> source(context);
    const In<T> x(context, "X");
    const Out<T> out(context, "Out");
    return MakeRowsKernel([=](const KernelContext& run) {
      const Bounds<T> bounds = source.Read(run);
      const T* from = x(run);
      T* to = out(run);
      ParallelFor(StorageElements(x.tensor(run)), kVectorGrain, [&](int64_t begin, int64_t end) {
        ClipArray(from + begin, bounds, to + begin, end - begin);
      });
    });
  });
}

template <typename T>
void CheckKeepsZero(const Bounds<T>& bounds) {
  SKIFF_ENFORCE(bounds.low <= 0 && bounds.high >= 0, kInvalidArgument,
                "clip: X is selected rows, min = ", bounds.low, " and max = ", bounds.high,
                ", expected min <= 0 <= max: the other rows are zeros");
}

// Also runs in place: each row depends on its own slots only, and its sum goes to the first of
// them.
template <typename T>
void ClipRows(const MergedRows& rows, const Tensor& x, const Bounds<T>& bounds, Tensor* out) {
  const int64_t width = RowWidth(x.shape());
  const int64_t grain = std::max<int64_t>(1, kVectorGrain / std::max<int64_t>(1, width));
  const T* values = x.data<T>();
  ParallelFor(rows.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = out->data<T>() + rows.slots(i)[0] * width;
      AddSlots(values, width, rows.slots(i), 0, width, to);
      ClipArray(to, bounds, to, width);
    }
  });
  // -1 marks an unused slot.
  std::ranges::fill(out->rows(), -1);
  for (int64_t i = 0; i < rows.count(); ++i) {
    out->rows()[static_cast<size_t>(rows.slots(i)[0])] = rows.row(i);
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareClipRows(PrepareContext& context) {
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const int workspace =
      context.RequestWorkspace(MergedRowsWorkspaceBytes(context.Input("X").shape[0]));
  return MakeRowsKernel([=, source = BoundSource<T>(context)](const KernelContext& run) {
    const Bounds<T> bounds = source.Read(run);
    CheckKeepsZero(bounds);
    const Tensor& rows = x.tensor(run);
    ClipRows(MergeRows(rows.rows(), rows.height(), run.workspace(workspace)), rows, bounds,
             &out.tensor(run));
  });
}

template <typename T>
void AddClipGradKernel(OpRegistry& registry) {
  AddElementwiseKernel<T>(
      registry, "clip_grad", {"X", "Out@GRAD", "X@GRAD"}, [](PrepareContext& context) {
        const BoundSource<T> source(context);
        const In<T> x(context, "X");
        const In<T> dout(context, "Out@GRAD");
        const Out<T> dx(context, "X@GRAD");
        return MakeRowsKernel([=](const KernelContext& run) {
          const Bounds<T> bounds = source.Read(run);
          const T* values = x(run);
          const T* from = dout(run);
          T* to = dx(run);
          ParallelFor(
              StorageElements(x.tensor(run)), kVectorGrain, [&](int64_t begin, int64_t end) {
                ClipGradArray(values + begin, from + begin, bounds, to + begin, end - begin);
              });
        });
      });
}

void CheckBounds(const OpContext& context) {
  const std::string& type = context.op().type;
  // Kernels read the tensors as X's dtype.
  for (const char* slot : {"Min", "Max"}) {
    if (!context.HasInput(slot)) continue;
    const TensorMeta& bound = context.Input(slot);
    SKIFF_ENFORCE(bound.dtype == context.Input("X").dtype, kInvalidArgument, type, ": ", slot,
                  " is ", bound.dtype, ", expected X's ", context.Input("X").dtype);
    CheckOneElement(context, slot);
  }
  if (context.HasInput("Min") || context.HasInput("Max")) return;
  CheckOrder(type, Bounds<float>{context.Attr<float>("min"), context.Attr<float>("max")});
}

void AddClipOps(OpRegistry& registry) {
  OpDef def = UnaryOpDef({.type = "clip",
                          .doc = "Out = min(max(X, min), max). Repeated selected rows are "
                                 "added first."});
  def.inputs[0].selected_rows = true;
  def.inputs.push_back({.name = "Min",
                        .doc = "One number of X's dtype, instead of min.",
                        .dispensable = true,
                        .checks_data = true,
                        .keeps_float32 = true});
  def.inputs.push_back({.name = "Max",
                        .doc = "One number of X's dtype, instead of max.",
                        .dispensable = true,
                        .checks_data = true,
                        .keeps_float32 = true});
  def.outputs[0].selected_rows = true;
  def.attrs = {{.name = "min",
                .type = AttrType::kFloat,
                .default_value = {},
                .doc = "The least value of Out."},
               {.name = "max",
                .type = AttrType::kFloat,
                .default_value = {},
                .doc = "The largest value of Out."}};
  def.kernel_dtype_slot = "X";
  def.infer = [](OpContext& context) {
    CheckBounds(context);
    const bool has_tensors = context.HasInput("Min") || context.HasInput("Max");
    if (context.Input("X").is_selected_rows() && !has_tensors) {
      CheckKeepsZero(Bounds<float>{context.Attr<float>("min"), context.Attr<float>("max")});
    }
    context.SetOutputLike("Out", "X");
  };

  OpDef grad = GradientOf(&def, {"X", "Min", "Max", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD where min < X < max, else 0.";
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  grad.elementwise = true;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
}

}  // namespace

void RegisterClip(OpRegistry& registry) {
  AddClipOps(registry);
  AddClipKernel<float>(registry);
  AddClipKernel<double>(registry);
  AddClipKernel<int32_t>(registry);
  AddClipKernel<int64_t>(registry);
  registry.AddSelectedRowsKernels<float, double>(
      "clip", []<typename T>(PrepareContext& context) { return PrepareClipRows<T>(context); });
  AddClipGradKernel<float>(registry);
  AddClipGradKernel<double>(registry);
}

}  // namespace skiff
#endif  // HWY_ONCE
