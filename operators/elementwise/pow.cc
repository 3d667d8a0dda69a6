// pow: Out = X^factor; the tensor FactorTensor overrides the attribute. Source: Fluid's pow. For
// integers, the factor is truncated to an integer, a negative one is an Error, and products wrap
// around.
//
// X@GRAD = Out@GRAD * factor * X^(factor - 1), or 0 if the factor is 0.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>

#include "framework/op/grad.h"
#include "operators/common/input_checks.h"
#include "operators/common/integer.h"
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/pow.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// Returns x^exponent for a small integer, by repeated squaring.
template <class D, class V>
HWY_INLINE V SmallPower(D d, V x, int exponent) {
  const V one = hn::Set(d, 1.0f);
  V power = one;
  for (int rest = std::abs(exponent); rest > 0; rest /= 2) {
    if (rest % 2 == 1) power = hn::Mul(power, x);
    x = hn::Mul(x, x);
  }
  // One division at the end rounds less than powers of a rounded inverse.
  return exponent < 0 ? hn::Div(one, power) : power;
}

struct SmallPow {
  int exponent;

  template <class D, class V>
  V operator()(D d, V x) const {
    return SmallPower(d, x, exponent);
  }
};

struct SmallPowGrad {
  int exponent;  // of the op

  template <class D, class V>
  V operator()(D d, V x, V dout) const {
    const V factor = hn::Set(d, static_cast<float>(exponent));
    return hn::Mul(dout, hn::Mul(factor, SmallPower(d, x, exponent - 1)));
  }
};

void SmallPowLoop(const float* x, int exponent, float* out, int64_t count) {
  UnaryLoop(SmallPow{exponent}, x, out, count);
}

void SmallPowGradLoop(const float* x, const float* dout, int exponent, float* dx, int64_t count) {
  BinaryLoop(SmallPowGrad{exponent}, x, 1, dout, 1, dx, count);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(SmallPowLoop);
HWY_EXPORT(SmallPowGradLoop);

// The factor of a prepared op, from a tensor or the attribute.
class FactorSource {
 public:
  explicit FactorSource(const OpContext& context)
      : input_(context, "FactorTensor"),
        dtype_(input_.is_there() ? context.Input("FactorTensor").dtype : DType::kFloat32),
        attr_(context.Attr<float>("factor")) {}

  double Read(const KernelContext& run) const {
    if (!input_.is_there()) return static_cast<double>(attr_);
    const Tensor& factor = input_.tensor(run);
    if (dtype_ == DType::kInt32) return static_cast<double>(*factor.data<int32_t>());
    if (dtype_ == DType::kInt64) return static_cast<double>(*factor.data<int64_t>());
    if (dtype_ == DType::kFloat64) return *factor.data<double>();
    return static_cast<double>(*factor.data<float>());
  }

 private:
  In<> input_;
  DType dtype_;
  float attr_;
};

// Returns whether a few multiplications suffice, whose rounding errors stay within those of the
// other float32 ops.
bool IsSmallInteger(double factor) {
  return std::abs(factor) <= 16 && factor == std::trunc(factor);
}

template <typename T>
T IntegerPower(T x, int64_t exponent) {
  T power{1};
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power = WrappingMul(power, x);
    x = WrappingMul(x, x);
  }
  return power;
}

template <typename T>
void CheckFactor(double factor) {
  SKIFF_ENFORCE(!std::is_integral_v<T> || FromFloat<int64_t>(factor) >= 0, kInvalidArgument,
                "pow: factor = ", factor, ", expected a nonnegative factor for integers");
}

template <typename T>
void Power(const T* x, double factor, T* out, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    const int64_t exponent = FromFloat<int64_t>(factor);
    ParallelFor(count, kScalarGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = IntegerPower(x[i], exponent);
    });
  } else {
    if constexpr (std::is_same_v<T, float>) {
      if (IsSmallInteger(factor)) {
        ParallelFor(count, kVectorGrain, [&](int64_t begin, int64_t end) {
          HWY_DYNAMIC_DISPATCH(SmallPowLoop)
          (x + begin, static_cast<int>(factor), out + begin, end - begin);
        });
        return;
      }
    }
    const T exponent = static_cast<T>(factor);
    ParallelFor(count, kScalarGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = std::pow(x[i], exponent);
    });
  }
}

template <typename T>
void PowerGradient(const T* x, const T* dout, double factor, T* dx, int64_t count) {
  // Without this case, X^-1 at X = 0 would make the gradient NaN.
  if (factor == 0) {
    ParallelFor(count, kVectorGrain,
                [&](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, T{0}); });
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (IsSmallInteger(factor)) {
      ParallelFor(count, kVectorGrain, [&](int64_t begin, int64_t end) {
        HWY_DYNAMIC_DISPATCH(SmallPowGradLoop)
        (x + begin, dout + begin, static_cast<int>(factor), dx + begin, end - begin);
      });
      return;
    }
  }
  const T exponent = static_cast<T>(factor);
  ParallelFor(count, kScalarGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      dx[i] = dout[i] * exponent * std::pow(x[i], exponent - T{1});
    }
  });
}

template <typename T>
void AddPowKernel(OpRegistry& registry) {
  AddElementwiseKernel<T>(registry, "pow", {"X", "Out"}, [](PrepareContext& context) {
    const FactorSource factor(context);
    const In<T> x(context, "X");
    const Out<T> out(context, "Out");
    // An attribute is known now, so a bad one is found before any run.
    if (!context.HasInput("FactorTensor")) CheckFactor<T>(context.Attr<float>("factor"));
    return MakeRowsKernel([=](const KernelContext& run) {
      const double exponent = factor.Read(run);
      CheckFactor<T>(exponent);
      Power(x(run), exponent, out(run), StorageElements(x.tensor(run)));
    });
  });
}

template <typename T>
void AddPowGradKernel(OpRegistry& registry) {
  AddElementwiseKernel<T>(registry, "pow_grad", {"X", "Out@GRAD", "X@GRAD"},
                          [](PrepareContext& context) {
                            const FactorSource factor(context);
                            const In<T> x(context, "X");
                            const In<T> dout(context, "Out@GRAD");
                            const Out<T> dx(context, "X@GRAD");
                            return MakeRowsKernel([=](const KernelContext& run) {
                              PowerGradient(x(run), dout(run), factor.Read(run), dx(run),
                                            StorageElements(x.tensor(run)));
                            });
                          });
}

void CheckFactorTensor(const OpContext& context) {
  if (!context.HasInput("FactorTensor")) return;
  const std::string& type = context.op().type;
  const TensorMeta& factor = context.Input("FactorTensor");
  const bool is_number = factor.dtype == DType::kFloat32 || factor.dtype == DType::kFloat64 ||
                         factor.dtype == DType::kInt32 || factor.dtype == DType::kInt64;
  SKIFF_ENFORCE(is_number, kInvalidArgument, type, ": FactorTensor is ", factor.dtype,
                ", expected float32, float64, int32 or int64");
  CheckOneElement(context, "FactorTensor");
}

void AddPowOps(OpRegistry& registry) {
  OpDef def = UnaryOpDef(
      {.type = "pow",
       .doc = "Out = X^factor.",
       .needs_float32 = true,
       .numbers = {{{.name = "factor", .default_value = 1.0f, .doc = "The exponent."}}}});
  def.inputs.push_back({.name = "FactorTensor",
                        .doc = "One number, instead of factor.",
                        .dispensable = true,
                        .keeps_float32 = true});
  def.kernel_dtype_slot = "X";
  def.infer = [](OpContext& context) {
    CheckFactorTensor(context);
    context.SetOutputLike("Out", "X");
  };

  OpDef grad = GradientOf(&def, {"X", "Out@GRAD", "FactorTensor"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD * factor * X^(factor - 1).";
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  grad.elementwise = true;
  // Not in the gradient op: only integers refuse a factor.
  def.inputs.back().checks_data = true;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
}

}  // namespace

void RegisterPow(OpRegistry& registry) {
  AddPowOps(registry);
  AddPowKernel<float>(registry);
  AddPowKernel<double>(registry);
  AddPowKernel<int32_t>(registry);
  AddPowKernel<int64_t>(registry);
  AddPowGradKernel<float>(registry);
  AddPowGradKernel<double>(registry);
}

}  // namespace skiff
#endif  // HWY_ONCE
