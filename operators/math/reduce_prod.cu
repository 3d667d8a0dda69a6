// CUDA kernels of reduce_prod and reduce_prod_grad; reduce_prod.cc has the formulas.
#include "operators/math/kernels/cuda_reduction.cuh"

namespace skiff {
namespace {

template <typename T>
struct ProductRule {
  // Integers wrap around, as unsigned numbers do.
  using Carry = SumOf<T>;
  static __device__ Carry Identity() { return 1; }
  static __device__ Carry Join(Carry a, Carry b) { return a * b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry *= static_cast<Carry>(x[place]);
  }
  __device__ void Finish(int64_t output, Carry product) const {
    out[output] = static_cast<T>(product);
  }

  const T* x;
  T* out;
};

// The product of an output's elements but the zeros, and their number.
struct Factors {
  double product;
  int64_t zeros;
};

template <typename T>
struct FactorsRule {
  using Carry = Factors;
  static __device__ Carry Identity() { return {1, 0}; }
  static __device__ Carry Join(const Carry& a, const Carry& b) {
    return {a.product * b.product, a.zeros + b.zeros};
  }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    const T value = x[place];
    if (value == 0) {
      ++carry->zeros;
    } else {
      carry->product *= static_cast<double>(value);
    }
  }
  __device__ void Finish(int64_t output, const Carry& total) const { factors[output] = total; }

  const T* x;
  Factors* factors;
};

// Divides the product by the element, except where it is 0: that isn't possible, and the product of
// the others may not be 0.
template <typename T>
struct ProductGradient {
  __device__ void operator()(int64_t i) const {
    const int64_t output = output_of(i);
    const T value = x[i];
    if (out[output] != 0) {
      dx[i] = dout[output] * out[output] / value;
      return;
    }
    const Factors all = factors[output];
    const bool has_other_zeros = all.zeros > (value == 0 ? 1 : 0);
    const double others = value == 0 ? all.product : all.product / static_cast<double>(value);
    dx[i] = has_other_zeros ? T{0} : static_cast<T>(static_cast<double>(dout[output]) * others);
  }

  CudaOutputOf output_of;
  const T* x;
  const T* out;
  const T* dout;
  const Factors* factors;
  T* dx;
};

template <typename T>
std::unique_ptr<Kernel> PrepareReduceProdGrad(PrepareContext& context) {
  const In<T> x(context, "X");
  const In<T> out(context, "Out");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const CudaFold<FactorsRule<T>> fold(context, context.Input("X").shape.element_count());
  const int memory = context.RequestWorkspace(context.Input("Out").shape.element_count() *
                                              static_cast<int64_t>(sizeof(Factors)));
  return MakeRowsKernel([=, axes = ReducedAxes(context)](const KernelContext& run) {
    const Shape& shape = dx.shape(run);
    if (shape.element_count() == 0) return;
    auto* factors = static_cast<Factors*>(run.workspace(memory));
    fold.Run(run, "reduce_prod_grad", CudaFoldView(shape, axes), {x(run), factors});
    ForEachOnDevice(run, "reduce_prod_grad", shape.element_count(),
                    ProductGradient<T>{CudaOutputOf(shape, axes), x(run), out(run), gradient(run),
                                       factors, dx(run)});
  });
}

}  // namespace

void RegisterReduceProdCuda(OpRegistry& registry) {
  AddCudaKernels<float, double, int32_t, int64_t>(
      registry, "reduce_prod", [=]<typename T>(PrepareContext& context) {
        using Rule = ProductRule<T>;
        return PrepareCudaReduction<Rule, T, T>(context, "reduce_prod",
                                                [](const CudaFoldView&, const T* x, T* out) {
                                                  return Rule{x, out};
                                                });
      });
  AddCudaKernels<float, double>(
      registry, "reduce_prod_grad",
      [=]<typename T>(PrepareContext& context) { return PrepareReduceProdGrad<T>(context); });
}

}  // namespace skiff
