// CUDA kernels of norm and norm_grad; norm.cc has the formulas.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/common/extreme_square.h"
#include "operators/math/kernels/cuda_line_factors.cuh"

namespace skiff {
namespace {

// Whether T may be too narrow for a line with this sum of squares. In float64 there is nothing
// wider.
template <typename T>
__device__ bool IsExtreme(double squares) {
  return std::is_same_v<T, float> && IsExtremeSquare(squares);
}

// What a line is multiplied by, 1 / norm.
template <typename T>
struct LineFactor {
  // By the sum of the line's squares.
  __device__ LineFactor(double squares, T epsilon) {
    const double sum = squares + static_cast<double>(epsilon);
    is_extreme = IsExtreme<T>(sum);
    norm =
        is_extreme ? static_cast<T>(std::sqrt(sum)) : std::sqrt(static_cast<T>(squares) + epsilon);
    factor = is_extreme ? 1 / std::sqrt(sum) : static_cast<double>(1 / norm);
  }
  __device__ T Times(T x) const {
    return is_extreme ? static_cast<T>(static_cast<double>(x) * factor)
                      : x * static_cast<T>(factor);
  }

  T norm;
  bool is_extreme;
  double factor;  // a T unless is_extreme
};

// What the gradient multiplies the elements of a line by: Out@GRAD by 1 / norm, X by `of_x`.
template <typename T>
struct GradientFactors {
  // `product`: the line's sum of X · Out@GRAD.
  __device__ GradientFactors(T norm, double product)
      : norm(norm),
        is_extreme(IsExtreme<T>(static_cast<double>(norm) * static_cast<double>(norm)) ||
                   !std::isfinite(static_cast<T>(product))) {
    const T inverse = 1 / norm;
    const double exact = 1 / static_cast<double>(norm);
    of_x = is_extreme
               ? product * (-exact * exact * exact)
               : static_cast<double>(static_cast<T>(product) * (-inverse * inverse * inverse));
  }
  __device__ T InDoubles(T x, T dout) const {
    return static_cast<T>(static_cast<double>(dout) / static_cast<double>(norm) +
                          static_cast<double>(x) * of_x);
  }

  T norm;
  bool is_extreme;  // T doesn't hold of_x: InDoubles makes the gradient
  double of_x;      // a T unless is_extreme
};

// `out` may be `x`; `norms` may be absent.
template <typename T>
struct NormalizeLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    double squares = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> values = LoadValues<kCount>(x + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        squares += static_cast<double>(values.at[k]) * static_cast<double>(values.at[k]);
      }
    });
    squares = group.Reduce(squares, JoinBySum{});
    if (!line.exists) return;
    const LineFactor<T> factor(squares, epsilon);
    if (group.lane == 0 && norms != nullptr) norms[line.index] = factor.norm;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      CudaValues<T, kCount> values = LoadValues<kCount>(x + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) values.at[k] = factor.Times(values.at[k]);
      StoreValues(values, is_aligned, out + at);
    });
  }

  const T* x;
  T* out;
  T* norms;
  T epsilon;
  bool is_aligned;
};

// `dx` may be `x` or `dout`.
template <typename T>
struct GradientOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    double product = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> xs = LoadValues<kCount>(x + at, is_aligned);
      const CudaValues<T, kCount> douts = LoadValues<kCount>(dout + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        product += static_cast<double>(xs.at[k]) * static_cast<double>(douts.at[k]);
      }
    });
    product = group.Reduce(product, JoinBySum{});
    if (!line.exists) return;
    const GradientFactors<T> factors(norms[line.index], product);
    const T inverse = 1 / factors.norm;
    const T x_factor = static_cast<T>(factors.of_x);
    line.ForEach<T>(group, [&]<int kCount>(int64_t, int64_t at) {
      const CudaValues<T, kCount> xs = LoadValues<kCount>(x + at, is_aligned);
      CudaValues<T, kCount> values = LoadValues<kCount>(dout + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values.at[k] = factors.is_extreme ? factors.InDoubles(xs.at[k], values.at[k])
                                          : values.at[k] * inverse + xs.at[k] * x_factor;
      }
      StoreValues(values, is_aligned, dx + at);
    });
  }

  const T* x;
  const T* norms;
  const T* dout;
  T* dx;
  bool is_aligned;
};

// ---- few long lines

// `norms` may be absent.
template <typename T>
struct FactorsOfLines {
  __device__ void operator()(int64_t line) const {
    factors[line] = LineFactor<T>(sums[line], epsilon);
    if (norms != nullptr) norms[line] = factors[line].norm;
  }

  const double* sums;
  T* norms;
  LineFactor<T>* factors;
  T epsilon;
};

// `out` may be `x`.
template <typename T>
struct ScaleElements {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    const CudaLinesOfPack lines(extents, i);
    CudaValues<T, kCount> values = LoadValues<kCount>(x + i, is_aligned);
#pragma unroll
    for (int k = 0; k < kCount; ++k) values.at[k] = factors[lines[k]].Times(values.at[k]);
    StoreValues(values, is_aligned, out + i);
  }

  AxisExtents extents;
  const T* x;
  const LineFactor<T>* factors;
  T* out;
  bool is_aligned;
};

template <typename T>
struct GradientFactorsOfLines {
  __device__ void operator()(int64_t line) const {
    factors[line] = GradientFactors<T>(norms[line], sums[line]);
  }

  const double* sums;
  const T* norms;
  GradientFactors<T>* factors;
};

// `dx` may be `x` or `dout`.
template <typename T>
struct GradientOfElements {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    const CudaLinesOfPack lines(extents, i);
    const CudaValues<T, kCount> xs = LoadValues<kCount>(x + i, is_aligned);
    CudaValues<T, kCount> values = LoadValues<kCount>(dout + i, is_aligned);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const GradientFactors<T>& of = factors[lines[k]];
      values.at[k] = of.is_extreme ? of.InDoubles(xs.at[k], values.at[k])
                                   : values.at[k] / of.norm + xs.at[k] * static_cast<T>(of.of_x);
    }
    StoreValues(values, is_aligned, dx + i);
  }

  AxisExtents extents;
  const T* x;
  const GradientFactors<T>* factors;
  const T* dout;
  T* dx;
  bool is_aligned;
};

// The sums of the lines and a factor for each line, if these are few and long.
template <class Term, typename Factor>
class LongLines {
 public:
  LongLines(PrepareContext& context, const AxisExtents& extents)
      : fold_(context, extents.lines() * extents.length),
        sums_(context.RequestWorkspace(MostLines(extents) * int64_t{sizeof(double)})),
        factors_(
            context.RequestWorkspace(MostLines(extents) * static_cast<int64_t>(sizeof(Factor)))) {}

  // Issues the sums, and returns where they will be.
  const double* Sum(const KernelContext& run, const char* what, const AxisExtents& extents,
                    const Term& term) const {
    auto* const sums = static_cast<double*>(run.workspace(sums_));
    fold_.Run(run, what, ViewOfLines(extents), {term, sums});
    return sums;
  }
  Factor* Factors(const KernelContext& run) const {
    return static_cast<Factor*>(run.workspace(factors_));
  }

 private:
  // A run may have fewer lines, or shorter ones.
  static int64_t MostLines(const AxisExtents& extents) {
    return std::min(extents.lines(), kMostLongLines);
  }

  CudaFold<CudaLineSum<Term>> fold_;
  int sums_;
  int factors_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareNorm(PrepareContext& context) {
  const int axis = AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
  const T epsilon = static_cast<T>(context.Attr<float>("epsilon"));
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const Out<T> norms(context, "Norm");
  const LongLines<SquareOf<T>, LineFactor<T>> long_lines(
      context, ExtentsOfAxis(context.Input("X").shape, axis));
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(x.shape(run), axis);
    const bool is_aligned = ArePacksAligned(x(run), out(run));
    if (!AreFewLongLines(extents)) {
      ForEachLineOnDevice<T>(run, "norm", extents,
                             NormalizeLines<T>{x(run), out(run), norms(run), epsilon, is_aligned});
      return;
    }
    const double* sums = long_lines.Sum(run, "norm", extents, {x(run)});
    LineFactor<T>* factors = long_lines.Factors(run);
    ForEachOnDevice(run, "norm", extents.lines(),
                    FactorsOfLines<T>{sums, norms(run), factors, epsilon});
    ForEachPackOnDevice<T>(run, "norm", extents.lines() * extents.length, PeriodOfLines(extents),
                           ScaleElements<T>{extents, x(run), factors, out(run), is_aligned});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareNormGrad(PrepareContext& context) {
  const int axis = AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
  const In<T> x(context, "X");
  const In<T> norms(context, "Norm");
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const LongLines<ProductOf<T>, GradientFactors<T>> long_lines(
      context, ExtentsOfAxis(context.Input("X").shape, axis));
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(x.shape(run), axis);
    const bool is_aligned = ArePacksAligned(x(run), dout(run), dx(run));
    if (!AreFewLongLines(extents)) {
      ForEachLineOnDevice<T>(
          run, "norm_grad", extents,
          GradientOfLines<T>{x(run), norms(run), dout(run), dx(run), is_aligned});
      return;
    }
    const double* sums = long_lines.Sum(run, "norm_grad", extents, {x(run), dout(run)});
    GradientFactors<T>* factors = long_lines.Factors(run);
    ForEachOnDevice(run, "norm_grad", extents.lines(),
                    GradientFactorsOfLines<T>{sums, norms(run), factors});
    ForEachPackOnDevice<T>(
        run, "norm_grad", extents.lines() * extents.length, PeriodOfLines(extents),
        GradientOfElements<T>{extents, x(run), factors, dout(run), dx(run), is_aligned});
  });
}

}  // namespace

void RegisterNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "norm", [=]<typename T>(PrepareContext& context) {
    return PrepareNorm<T>(context);
  });
  AddCudaKernels<float, double>(registry, "norm_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareNormGrad<T>(context);
  });
}

}  // namespace skiff
