// General matrix multiplication, C = alpha * op(A) * op(B) + beta * C, on row-major matrices: op(A)
// is [m, k], op(B) [k, n], C [m, n]; op transposes or not. A bias may be added to each row of C.
//
// float runs on oneDNN's matmul (2.x and 3.x), and on PackedProduct where the rows vary from run to
// run or oneDNN is slow; double runs on PackedProduct. BFloat16, which needs UsesAvx512Bf16(), runs
// on Bf16Product: its sums are float32, elements of C are rounded once, and denormal numbers count
// as zeros. A Gemm is prepared once and can run many times, one thread at a time. The order in
// which an element of C is summed depends only on k, and on the order of a summed batch. In oneDNN,
// it may also depend on the other sizes, on the number of threads, and on the instruction set.
#pragma once

#include <functional>
#include <memory>

#include "framework/op/kernel.h"
#include "framework/tensor/shape.h"
#include "operators/common/cpu/gemm_spec.h"
#include "operators/common/half.h"

namespace skiff {

// T is float, double or BFloat16.
template <typename T>
class Gemm {
 public:
  // Requests scratch memory from `context`. Throws Error for an invalid spec.
  //
  // `prepacked_b` is the index of the op's input that is B, or -1. Run then reads a derived form of
  // B in the layout that suits oneDNN best, or B itself if it has this layout. The plan recomputes
  // the form when the input changes. Throws Error unless T is float and IsOneProduct(spec). With
  // -1, Run reads B as it is.
  //
  // `constant_b` is the index of the input that is B, or -1. Where the rows vary, or T is BFloat16,
  // and that input is constant (PrepareContext::IsConstant), Run reads a derived form of one matrix
  // B, as PackedProduct packs it; then products of other sizes differ in m alone.
  Gemm(const GemmSpec& spec, PrepareContext& context, int prepacked_b = -1, int constant_b = -1);
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;

  // Computes the product. c must overlap neither a nor b. The bias is read if the spec adds one.
  void Run(const KernelContext& context, const T* a, const T* b, T* c,
           const T* bias = nullptr) const;
  // Computes a product of other sizes, of which n mustn't be larger; of BFloat16, none may be, and
  // both products transpose the same factors. Throws Error unless takes_other_sizes or the product
  // is the prepared one.
  void Run(const KernelContext& context, const GemmSpec& spec, const T* a, const T* b, T* c,
           const T* bias = nullptr) const;
  // True where context.rows_vary(), unless B is prepacked; of BFloat16, always.
  bool takes_other_sizes() const;

 private:
  class Product;
  std::unique_ptr<Product> product_;
};

extern template class Gemm<float>;
extern template class Gemm<double>;
extern template class Gemm<BFloat16>;

// Returns the product of X and Y with these shapes, which have passed the op's checks. Mustn't
// allocate.
using ProductOfShapes = std::function<GemmSpec(const Shape& x, const Shape& y)>;

// Returns the kernel of an op with slots X, Y and Out that computes the product X * Y that
// `product_of` specifies; the bias that it may add is in slot Bias. T is that of Gemm. With
// `prepacks_y` the kernel reads Y prepacked, as Gemm does.
template <typename T>
std::unique_ptr<Kernel> PrepareProduct(PrepareContext& context, const ProductOfShapes& product_of,
                                       bool prepacks_y = false);

extern template std::unique_ptr<Kernel> PrepareProduct<float>(PrepareContext&,
                                                              const ProductOfShapes&, bool);
extern template std::unique_ptr<Kernel> PrepareProduct<double>(PrepareContext&,
                                                               const ProductOfShapes&, bool);
extern template std::unique_ptr<Kernel> PrepareProduct<BFloat16>(PrepareContext&,
                                                                 const ProductOfShapes&, bool);

// Returns the float32 kernel "prepacked" of an op with slots X, Y and Out that computes the product
// X * Y that `product_of` specifies. It reads Y prepacked, which pays if Y stays the same from step
// to step. Shapes don't tell that, so the kernel runs only when requested by name or measured to be
// faster.
KernelDef PrepackedProductKernel(std::function<ProductOfShapes(const OpContext&)> product_of);

}  // namespace skiff
