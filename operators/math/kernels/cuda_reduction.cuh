// Common parts of the CUDA kernels of the reductions over the axes `dim`.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/math/kernels/reduction.h"

namespace skiff {
namespace {

template <typename T, typename Out>
struct CudaSumRule {
  // Integers wrap around.
  using Carry = SumOf<T>;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry += static_cast<Carry>(x[place]);
  }
  __device__ void Finish(int64_t output, Carry sum) const {
    if constexpr (std::is_floating_point_v<T>) {
      out[output] = static_cast<Out>(sum / static_cast<double>(divisor));
    } else {
      // As T holds it, if the result is no wider.
      out[output] = static_cast<Out>(static_cast<int64_t>(sum) / divisor);
    }
  }

  const T* x;
  Out* out;
  int64_t divisor;
};

// NaN wins against every number.
template <typename T, bool kIsMax>
struct CudaExtremeRule {
  using Carry = T;
  static __device__ Carry Identity() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) {
      return kIsMax ? -Limits::infinity() : Limits::infinity();
    } else {
      return kIsMax ? Limits::lowest() : Limits::max();
    }
  }
  static __device__ Carry Join(Carry best, Carry value) {
    return (kIsMax ? value > best : value < best) || value != value ? value : best;
  }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry = Join(*carry, x[place]);
  }
  __device__ void Finish(int64_t output, Carry best) const { out[output] = best; }

  const T* x;
  T* out;
};

template <bool kOfAll>
struct CudaQuantifierRule {
  using Carry = bool;
  static __device__ Carry Identity() { return kOfAll; }
  static __device__ Carry Join(Carry a, Carry b) { return kOfAll ? a && b : a || b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry = Join(*carry, x[place]);
  }
  __device__ void Finish(int64_t output, Carry result) const { out[output] = result; }

  const bool* x;
  bool* out;
};

// Sets each element to factor * the output that it belongs to.
template <typename T>
struct CudaSpread {
  __device__ void operator()(int64_t i) const { to[i] = factor * outputs[output_of(i)]; }

  CudaOutputOf output_of;
  const T* outputs;
  T* to;
  T factor;
};

// dx may be x.
template <typename T>
struct CudaSpreadToEqual {
  __device__ void operator()(int64_t i) const {
    const int64_t output = output_of(i);
    dx[i] = x[i] == out[output] ? dout[output] : T{0};
  }

  CudaOutputOf output_of;
  const T* x;
  const T* out;
  const T* dout;
  T* dx;
};

// Returns a kernel from X to Out, with the rule that rule_of(view, x, out) returns. `type` is a
// string literal.
template <class Rule, typename T, typename Result, class RuleOf>
std::unique_ptr<Kernel> PrepareCudaReduction(PrepareContext& context, const char* type,
                                             const RuleOf& rule_of) {
  const CudaFold<Rule> fold(context, context.Input("X").shape.element_count());
  const In<T> x(context, "X");
  const Out<Result> out(context, "Out");
  return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
    const CudaFoldView view(x.shape(run), axes);
    fold.Run(run, type, view, rule_of(view, x(run), out(run)));
  });
}

// Returns a kernel that sets X@GRAD to Out@GRAD, or to a share of Out@GRAD.
template <typename T>
std::unique_ptr<Kernel> PrepareCudaSpread(PrepareContext& context, const char* type, bool divides) {
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
    const Shape& shape = dx.shape(run);
    const auto elements = static_cast<T>(CudaFoldView(shape, axes).elements);
    ForEachOnDevice(run, type, shape.element_count(),
                    CudaSpread<T>{CudaOutputOf(shape, axes), gradient(run), dx(run),
                                  divides ? T{1} / elements : T{1}});
  });
}

// reduce_max and reduce_min.
template <bool kIsMax>
void AddCudaExtremeKernels(OpRegistry& registry) {
  static constexpr const char* kType = kIsMax ? "reduce_max" : "reduce_min";
  static constexpr const char* kGradType = kIsMax ? "reduce_max_grad" : "reduce_min_grad";
  AddCudaKernels<float, double, int32_t, int64_t>(
      registry, kType, [=]<typename T>(PrepareContext& context) {
        using Rule = CudaExtremeRule<T, kIsMax>;
        const AxisFlags axes = ReducedAxes(context);
        const Shape& shape = context.Input("X").shape;
        CheckSomethingIsReduced(kType, shape, AxisReduction(shape, axes));
        const CudaFold<Rule> fold(context, shape.element_count());
        const In<T> x(context, "X");
        const Out<T> out(context, "Out");
        return MakeRowsKernel([=](const KernelContext& run) {
          const Shape& of_run = x.shape(run);
          CheckSomethingIsReduced(kType, of_run, AxisReduction(of_run, axes));
          fold.Run(run, kType, CudaFoldView(of_run, axes), Rule{x(run), out(run)});
        });
      });
  AddCudaKernels<float, double>(registry, kGradType, [=]<typename T>(PrepareContext& context) {
    const In<T> x(context, "X");
    const In<T> out(context, "Out");
    const In<T> gradient(context, "Out@GRAD");
    const Out<T> dx(context, "X@GRAD");
    return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
      const Shape& shape = dx.shape(run);
      ForEachOnDevice(run, kGradType, shape.element_count(),
                      CudaSpreadToEqual<T>{CudaOutputOf(shape, axes), x(run), out(run),
                                           gradient(run), dx(run)});
    });
  });
}

}  // namespace
}  // namespace skiff
