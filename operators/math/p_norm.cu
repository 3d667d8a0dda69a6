// CUDA kernels of p_norm and p_norm_grad; p_norm.cc has the formulas.
//
// The gradient is two launches: one makes what the elements of a norm have in common, the other
// treats all elements one by one, so that a single norm keeps the whole device busy.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda_fold.cuh"
#include "operators/common/cuda_for_each.cuh"
#include "operators/math/kernels/cuda_line_factors.cuh"
#include "operators/math/kernels/cuda_reduction.cuh"
#include "operators/math/kernels/p_norm_extents.h"
#include "operators/math/kernels/p_norm_slope.h"

namespace skiff {
namespace {

// ---- norms

// The sum of |X|^p. kIsPower: for any p, else for 0, 1 and 2.
template <typename T, bool kIsPower>
struct PowerSum {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    const T value = x[place];
    if constexpr (kIsPower) {
      *carry += std::pow(std::abs(static_cast<double>(value)), order);
    } else if (order == 2) {
      *carry += WideProduct(value, value);
    } else if (order == 1) {
      *carry += std::abs(static_cast<double>(value));
    } else {
      *carry += value != T{0} ? 1 : 0;
    }
  }
  __device__ void Finish(int64_t output, Carry sum) const {
    if constexpr (kIsPower) {
      const bool is_lost = sum == 0 || std::isinf(sum);
      out[output] = static_cast<T>(is_lost ? NormOfRatios(output) : std::pow(sum, 1 / order));
    } else {
      out[output] = static_cast<T>(order == 2 ? std::sqrt(sum) : sum);
    }
  }

  // As on the CPU, by one thread.
  __device__ double NormOfRatios(int64_t line) const {
    const CudaDivision at = Divide(line, extents.inner);
    const T* const first = x + at.quotient * extents.length * extents.inner + at.rest;
    const auto size = [&](int64_t i) {
      return std::abs(static_cast<double>(first[i * extents.inner]));
    };
    double unit = size(0);
    for (int64_t i = 1; i < extents.length; ++i) {
      if (order > 0 ? size(i) > unit : size(i) < unit) unit = size(i);
    }
    if (unit == 0 || std::isinf(unit)) return unit;
    double total = 0;
    for (int64_t i = 0; i < extents.length; ++i) total += std::pow(size(i) / unit, order);
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
      [=, x = context.InputIndex("X"), out = context.OutputIndex("Out")](const KernelContext& run) {
        fold.Run(run, "p_norm", ViewOfLines(extents),
                 rule_of(run.input(x).data<T>(), run.output(out).data<T>()));
      });
}

template <typename T, bool kIsPower>
std::unique_ptr<Kernel> PrepareSum(PrepareContext& context, const AxisExtents& extents,
                                   double order) {
  using Rule = PowerSum<T, kIsPower>;
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
  return order == 0 || order == 1 || order == 2 ? PrepareSum<T, false>(context, extents, order)
                                                : PrepareSum<T, true>(context, extents, order);
}

// ---- gradients

template <typename T>
__device__ T SignOf(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

// The factor of a norm's elements.
template <typename T>
struct FactorOfNorm {
  __device__ void operator()(int64_t i) const {
    const double divisor = std::pow(static_cast<double>(norms[i]), order - 1) + epsilon;
    const T factor = static_cast<T>(static_cast<double>(gradient[i]) / divisor);
    // For a norm of 0 all elements are 0, and so are their gradients: nothing to divide.
    factors[i] = order == 0 || norms[i] == T{0} ? T{0} : factor;
  }

  const T* norms;
  const T* gradient;
  T* factors;
  double order;
  double epsilon;
};

// Functions of an element, its norm, and a factor of the norm: FactorOfNorm's for orders 0, 1 and
// 2, else the norm's gradient.

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
  __device__ T operator()(T x, T norm, T gradient) const {
    return static_cast<T>(
        PNormSlope(static_cast<double>(x), static_cast<double>(norm), order, epsilon) *
        static_cast<double>(gradient));
  }

  double order;
  double epsilon;
};

// `dx` may be `x`.
template <class Function, typename T>
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
  const T* factors;
  T* dx;
  bool is_aligned;
};

template <class Function, typename T>
std::unique_ptr<Kernel> PrepareGradient(PrepareContext& context, double order,
                                        const Function& function) {
  const AxisExtents extents = PNormExtents(context);
  const auto epsilon = static_cast<double>(context.Attr<float>("epsilon"));
  const int x_input = context.InputIndex("X");
  const int out_input = context.InputIndex("Out");
  const int gradient_input = context.InputIndex("Out@GRAD");
  const int dx_output = context.OutputIndex("X@GRAD");
  const bool has_factors = order == 0 || order == 1 || order == 2;
  const int factors =
      has_factors ? context.RequestWorkspace(extents.lines() * static_cast<int64_t>(sizeof(T)))
                  : -1;
  return MakeKernel([=](const KernelContext& run) {
    const T* x = run.input(x_input).data<T>();
    const T* norms = run.input(out_input).data<T>();
    const T* of_norms = run.input(gradient_input).data<T>();
    T* dx = run.output(dx_output).data<T>();
    if (has_factors) {
      T* made = static_cast<T*>(run.workspace(factors));
      ForEachOnDevice(run, "p_norm_grad", extents.lines(),
                      FactorOfNorm<T>{norms, of_norms, made, order, epsilon});
      of_norms = made;
    }
    ForEachPackOnDevice<T>(run, "p_norm_grad", extents.lines() * extents.length,
                           PeriodOfLines(extents),
                           PNormGradientOfElements<Function, T>{
                               function, extents, x, norms, of_norms, dx, ArePacksAligned(x, dx)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PreparePNormGrad(PrepareContext& context) {
  const auto order = static_cast<double>(context.Attr<float>("porder"));
  const auto prepare = [&](const auto& function) {
    return PrepareGradient<std::decay_t<decltype(function)>, T>(context, order, function);
  };
  if (std::isinf(order)) return prepare(ExtremeGradient{});
  if (order == 2) return prepare(SquareGradient{});
  if (order == 0 || order == 1) return prepare(SignGradient{});
  return prepare(PowerGradient{order, static_cast<double>(context.Attr<float>("epsilon"))});
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
