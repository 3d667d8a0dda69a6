// CUDA kernels of cos_sim and cos_sim_grad; cos_sim.cc has the formulas.
#include <cmath>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/common/extreme_square.h"
#include "operators/math/kernels/cos_sim_length.h"

namespace skiff {
namespace {

struct Rows {
  Rows(const Shape& x, const Shape& y)
      : count(x[0]), size(x.element_count(1, x.rank())), shares_y(y[0] == 1 && x[0] != 1) {}

  __device__ int64_t YRow(int64_t row) const { return shares_y ? 0 : row; }

  int64_t count;
  int64_t size;
  bool shares_y;  // all rows of X meet the only one of Y
};

// The lengths may be absent.
template <typename T>
struct CosSimOfRows {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    const bool has_x = line.index < rows.count;
    // In float64, as on the CPU.
    double product = 0;
    double a_square = 0;
    double b_square = 0;
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      const CudaValues<T, kCount> of_b =
          LoadValues<kCount>(y + (rows.shares_y ? j : at), is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        b_square += static_cast<double>(of_b.at[k]) * static_cast<double>(of_b.at[k]);
      }
      if (!has_x) return;
      const CudaValues<T, kCount> of_a = LoadValues<kCount>(x + at, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        a_square += static_cast<double>(of_a.at[k]) * static_cast<double>(of_a.at[k]);
        product += static_cast<double>(of_a.at[k]) * static_cast<double>(of_b.at[k]);
      }
    });
    product = group.Reduce(product, JoinBySum{});
    a_square = group.Reduce(a_square, JoinBySum{});
    b_square = group.Reduce(b_square, JoinBySum{});
    if (group.lane > 0 || !line.exists) return;
    const double a_length = LengthAs<T>(std::sqrt(a_square));
    const double b_length = LengthAs<T>(std::sqrt(b_square));
    if (y_norms != nullptr && has_x != rows.shares_y) {
      y_norms[rows.YRow(line.index)] = static_cast<T>(b_length);
    }
    if (!has_x) return;
    if (x_norms != nullptr) x_norms[line.index] = static_cast<T>(a_length);
    // Two divisions, since the product of both lengths could overflow.
    out[line.index] = static_cast<T>(product / a_length / b_length);
  }

  const T* x;
  const T* y;
  Rows rows;
  T* out;
  T* x_norms;
  T* y_norms;
  bool is_aligned;
};

template <typename T>
struct Gradient {
  const T* x;
  const T* y;
  const T* out;
  const T* x_norms;
  const T* y_norms;
  const T* of_out;

  // Returns element `column` of the gradient that one row contributes to X or Y.
  __device__ T At(const Rows& rows, int64_t row, int64_t column, bool of_x) const {
    const T x_norm = x_norms[row];
    const T y_norm = y_norms[rows.YRow(row)];
    const T own_norm = of_x ? x_norm : y_norm;
    return AreExtreme(own_norm, x_norm, y_norm)
               ? static_cast<T>(In<double>(rows, row, column, of_x, own_norm))
               : In<T>(rows, row, column, of_x, own_norm);
  }

  // Whether T may be too narrow for factors that these norms make.
  __device__ static bool AreExtreme(double own_norm, double x_norm, double y_norm) {
    return IsExtremeSquare(own_norm * own_norm) || IsExtremeSquare(x_norm * y_norm);
  }

  // In the type C.
  template <typename C>
  __device__ C In(const Rows& rows, int64_t row, int64_t column, bool of_x, C own_norm) const {
    const C of_own = static_cast<C>(of_out[row]) * static_cast<C>(out[row]) / (own_norm * own_norm);
    const C of_other = static_cast<C>(of_out[row]) /
                       (static_cast<C>(x_norms[row]) * static_cast<C>(y_norms[rows.YRow(row)]));
    const C a = static_cast<C>(x[row * rows.size + column]);
    const C b = static_cast<C>(y[rows.YRow(row) * rows.size + column]);
    return of_other * (of_x ? b : a) - of_own * (of_x ? a : b);
  }
};

template <typename T>
struct GradientOfRows {
  __device__ void operator()(int64_t i) const {
    const CudaDivision at = Divide(i, rows.size);
    to[i] = gradient.At(rows, at.quotient, at.rest, of_x);
  }

  Gradient<T> gradient;
  Rows rows;
  bool of_x;
  T* to;
};

// Of a single Y, which every row of X contributes to.
template <typename T>
struct SharedGradient {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t, int64_t column, int64_t row, Carry* carry) const {
    *carry += static_cast<double>(gradient.At(rows, row, column, false));
  }
  __device__ void Finish(int64_t column, Carry sum) const { dy[column] = static_cast<T>(sum); }

  Gradient<T> gradient;
  Rows rows;
  T* dy;
};

template <typename T>
std::unique_ptr<Kernel> PrepareCosSim(PrepareContext& context) {
  const In<T> x_input(context, "X");
  const In<T> y_input(context, "Y");
  const Out<T> out_output(context, "Out");
  const Out<T> x_norm(context, "XNorm");
  const Out<T> y_norm(context, "YNorm");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows(x_input.shape(run), y_input.shape(run));
    const T* x = x_input(run);
    const T* y = y_input(run);
    // A single Y has a row of its own, since X may have none.
    const AxisExtents lines{.outer = rows.count + (rows.shares_y ? 1 : 0), .length = rows.size};
    ForEachLineOnDevice<T>(run, "cos_sim", lines,
                           CosSimOfRows<T>{x, y, rows, out_output(run), x_norm(run), y_norm(run),
                                           ArePacksAligned(x, y)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareCosSimGrad(PrepareContext& context) {
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const In<T> out(context, "Out");
  const In<T> x_norm(context, "XNorm");
  const In<T> y_norm(context, "YNorm");
  const In<T> of_out(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  const Rows prepared(context.Input("X").shape, context.Input("Y").shape);
  const bool sums = dy.is_there() && prepared.shares_y;
  const CudaFold<SharedGradient<T>> fold(context, sums ? prepared.count * prepared.size : 0);
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows(x.shape(run), y.shape(run));
    const Gradient<T> gradient{x(run), y(run), out(run), x_norm(run), y_norm(run), of_out(run)};
    const auto of_rows = [&](bool of_x, const Out<T>& output) {
      ForEachOnDevice(run, "cos_sim_grad", rows.count * rows.size,
                      GradientOfRows<T>{gradient, rows, of_x, output(run)});
    };
    if (dx.is_there()) of_rows(true, dx);
    if (!dy.is_there()) return;
    if (!rows.shares_y) return of_rows(false, dy);
    fold.Run(run, "cos_sim_grad", CudaFoldView(rows.count, rows.size), {gradient, rows, dy(run)});
  });
}

}  // namespace

void RegisterCosSimCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "cos_sim", [=]<typename T>(PrepareContext& context) {
    return PrepareCosSim<T>(context);
  });
  AddCudaKernels<float, double>(registry, "cos_sim_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareCosSimGrad<T>(context);
  });
}

}  // namespace skiff
