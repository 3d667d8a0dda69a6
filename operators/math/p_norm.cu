// CUDA kernels of p_norm and p_norm_grad; p_norm.cc has the formulas.
//
// The gradient is two launches: one makes what the elements of a norm have in common, the other
// treats all elements one by one, so that a single norm keeps the whole device busy.
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/math/kernels/cuda_line_factors.cuh"
#include "operators/math/kernels/cuda_reduction.cuh"
#include "operators/math/kernels/p_norm_extents.h"
#include "operators/math/kernels/p_norm_slope.h"

namespace skiff {
namespace {

// ---- norms

// The sum of |X|^p for p of 0, 1 or 2.
template <typename T>
struct SimpleSum {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    const auto value = static_cast<double>(x[place]);
    if (order == 2) {
      *carry += value * value;
    } else if (order == 1) {
      *carry += std::abs(value);
    } else {
      *carry += value != 0 ? 1 : 0;
    }
  }
  __device__ void Finish(int64_t output, Carry sum) const {
    out[output] = static_cast<T>(order == 2 ? std::sqrt(sum) : sum);
  }

  const T* x;
  T* out;
  double order;
};

// The sum for any other p, and the largest element (kIsPositive), or the smallest.
struct PowerCarry {
  double sum;
  double unit;
};

template <typename T, bool kIsPositive>
struct PowerSum {
  using Carry = PowerCarry;
  static __device__ Carry Identity() {
    return {0, kIsPositive ? 0 : std::numeric_limits<double>::infinity()};
  }
  static __device__ Carry Join(const Carry& a, const Carry& b) {
    return {a.sum + b.sum, (kIsPositive ? a.unit > b.unit : a.unit < b.unit) ? a.unit : b.unit};
  }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    const double size = std::abs(static_cast<double>(x[place]));
    *carry = Join(*carry, {std::pow(size, order), size});
  }
  __device__ void Finish(int64_t output, const Carry& total) const {
    const bool is_lost = total.sum < std::numeric_limits<double>::min() || std::isinf(total.sum);
    out[output] =
        static_cast<T>(is_lost ? NormOfRatios(output, total.unit) : std::pow(total.sum, 1 / order));
  }

  // As on the CPU, by one thread.
  __device__ double NormOfRatios(int64_t line, double unit) const {
    if (unit == 0 || std::isinf(unit)) return unit;
    const CudaDivision at = Divide(line, extents.inner);
    const T* const first = x + at.quotient * extents.length * extents.inner + at.rest;
    double total = 0;
    for (int64_t i = 0; i < extents.length; ++i) {
      total += std::pow(std::abs(static_cast<double>(first[i * extents.inner])) / unit, order);
    }
    return unit * std::pow(total, 1 / order);
  }

  const T* x;
  T* out;
  double order;
  AxisExtents extents;
};

template <typename T, bool kIsMax>
struct ExtremeSize : CudaExtremeRule<T, kIsMax> {
  using Rule = CudaExtremeRule<T, kIsMax>;
  __device__ void Add(int64_t place, int64_t, int64_t, T* carry) const {
    *carry = Rule::Join(*carry, std::abs(this->x[place]));
  }
};

template <class Rule, typename T, class RuleOf>
std::unique_ptr<Kernel> PrepareFold(PrepareContext& context, const AxisExtents& extents,
                                    const RuleOf& rule_of) {
  const CudaFold<Rule> fold(context, extents.lines() * extents.length);
  return MakeKernel(
      [=, x = In<T>(context, "X"), out = Out<T>(context, "Out")](const KernelContext& run) {
        fold.Run(run, "p_norm", ViewOfLines(extents), rule_of(x(run), out(run)));
      });
}

template <typename T, bool kIsPositive>
std::unique_ptr<Kernel> PreparePower(PrepareContext& context, const AxisExtents& extents,
                                     double order) {
  using Rule = PowerSum<T, kIsPositive>;
  return PrepareFold<Rule, T>(context, extents, [=](const T* x, T* out) {
    return Rule{x, out, order, extents};
  });
}

template <typename T, bool kIsMax>
std::unique_ptr<Kernel> PrepareExtreme(PrepareContext& context, const AxisExtents& extents) {
  using Rule = ExtremeSize<T, kIsMax>;
  return PrepareFold<Rule, T>(context, extents, [](const T* x, T* out) { return Rule{{x, out}}; });
}

template <typename T>
std::unique_ptr<Kernel> PreparePNorm(PrepareContext& context) {
  const AxisExtents extents = PNormExtents(context);
  CheckPNormExtents(context, extents);
  const auto order = static_cast<double>(context.Attr<float>("porder"));
  if (std::isinf(order)) {
    return order > 0 ? PrepareExtreme<T, true>(context, extents)
                     : PrepareExtreme<T, false>(context, extents);
  }
  if (order == 0 || order == 1 || order == 2) {
    using Rule = SimpleSum<T>;
    return PrepareFold<Rule, T>(context, extents, [=](const T* x, T* out) {
      return Rule{x, out, order};
    });
  }
  return order > 0 ? PreparePower<T, true>(context, extents, order)
                   : PreparePower<T, false>(context, extents, order);
}

// ---- gradients

template <typename T>
__device__ T SignOf(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

// Sets what the elements of a norm have in common: for p of 0, 1 and 2 a factor.
template <typename T>
struct FactorOfNorm {
  using Factor = T;
  __device__ void operator()(int64_t i) const {
    const double divisor = std::pow(static_cast<double>(norms[i]), order - 1) + epsilon;
    const T factor = static_cast<T>(static_cast<double>(gradient[i]) / divisor);
    // For a norm of 0 all elements are 0, and so are their gradients: nothing to divide.
    factors[i] = order == 0 || norms[i] == T{0} ? T{0} : factor;
  }

  const T* norms;
  const T* gradient;
  Factor* factors;
  double order;
  double epsilon;
};

// For any other p the slope.
template <typename T>
struct SlopeOfNorm {
  using Factor = PNormSlope<double>;
  __device__ void operator()(int64_t i) const {
    factors[i] =
        Factor(static_cast<double>(norms[i]), static_cast<double>(gradient[i]), order, epsilon);
  }

  const T* norms;
  const T* gradient;
  Factor* factors;
  double order;
  double epsilon;
};

// Functions of an element, its norm, and what its line has in common. For infinities, that is the
// norm's gradient.

struct ExtremeGradient {
  template <typename T>
  __device__ T operator()(T x, T norm, T gradient) const {
    return std::abs(x) == norm ? SignOf(x) * gradient : T{0};
  }
};

struct SignGradient {
  template <typename T>
  __device__ T operator()(T x, T, T factor) const {
    return SignOf(x) * factor;
  }
};

struct SquareGradient {
  template <typename T>
  __device__ T operator()(T x, T, T factor) const {
    return x * factor;
  }
};

struct PowerGradient {
  template <typename T>
  __device__ T operator()(T x, T, const PNormSlope<double>& slope) const {
    return static_cast<T>(slope(static_cast<double>(x), order));
  }

  double order;
};

// `dx` may be `x`.
template <class Function, typename T, typename Factor>
struct PNormGradientOfElements {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    const CudaLinesOfPack lines(extents, i);
    CudaValues<T, kCount> values = LoadValues<kCount>(x + i, is_aligned);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int64_t line = lines[k];
      values.at[k] = function(values.at[k], norms[line], factors[line]);
    }
    StoreValues(values, is_aligned, dx + i);
  }

  Function function;
  AxisExtents extents;
  const T* x;
  const T* norms;
  const Factor* factors;
  T* dx;
  bool is_aligned;
};

// FactorsOf makes the factors of the norms; void: they are the norms' gradients.
template <class FactorsOf, typename T, class Function>
std::unique_ptr<Kernel> PrepareGradient(PrepareContext& context, double order,
                                        const Function& function) {
  const AxisExtents extents = PNormExtents(context);
  const auto epsilon = static_cast<double>(context.Attr<float>("epsilon"));
  const In<T> x(context, "X");
  const In<T> out(context, "Out");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const auto differentiate = [=](const KernelContext& run, const auto* factors_of_norms) {
    using Factor = std::decay_t<decltype(*factors_of_norms)>;
    ForEachPackOnDevice<T>(run, "p_norm_grad", extents.lines() * extents.length,
                           PeriodOfLines(extents),
                           PNormGradientOfElements<Function, T, Factor>{
                               function, extents, x(run), out(run), factors_of_norms, dx(run),
                               ArePacksAligned(x(run), dx(run))});
  };
  if constexpr (std::is_void_v<FactorsOf>) {
    return MakeKernel([=](const KernelContext& run) { differentiate(run, gradient(run)); });
  } else {
    using Factor = typename FactorsOf::Factor;
    const int factors =
        context.RequestWorkspace(extents.lines() * static_cast<int64_t>(sizeof(Factor)));
    return MakeKernel([=](const KernelContext& run) {
      auto* made = static_cast<Factor*>(run.workspace(factors));
      ForEachOnDevice(run, "p_norm_grad", extents.lines(),
                      FactorsOf{out(run), gradient(run), made, order, epsilon});
      differentiate(run, static_cast<const Factor*>(made));
    });
  }
}

template <typename T>
std::unique_ptr<Kernel> PreparePNormGrad(PrepareContext& context) {
  const auto order = static_cast<double>(context.Attr<float>("porder"));
  if (std::isinf(order)) return PrepareGradient<void, T>(context, order, ExtremeGradient{});
  if (order == 2) return PrepareGradient<FactorOfNorm<T>, T>(context, order, SquareGradient{});
  if (order == 0 || order == 1) {
    return PrepareGradient<FactorOfNorm<T>, T>(context, order, SignGradient{});
  }
  return PrepareGradient<SlopeOfNorm<T>, T>(context, order, PowerGradient{order});
}

}  // namespace

void RegisterPNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "p_norm", [=]<typename T>(PrepareContext& context) {
    return PreparePNorm<T>(context);
  });
  AddCudaKernels<float, double>(registry, "p_norm_grad", [=]<typename T>(PrepareContext& context) {
    return PreparePNormGrad<T>(context);
  });
}

}  // namespace skiff
