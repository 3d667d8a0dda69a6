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

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>

#include "framework/op/kernel.h"
#include "framework/tensor/shape.h"
#include "operators/common/half.h"

namespace skiff {

// One dimension of a batch. Strides count elements. Stride 0 of A or B: every index reads the same
// matrix. Stride 0 of C: the products of all indices are summed into one matrix.
struct GemmBatchDim {
  int64_t size = 1;
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;

  friend bool operator==(const GemmBatchDim&, const GemmBatchDim&) = default;
};

// Outermost first. In an array, since kernels make specs in each run, where they mustn't allocate.
class GemmBatch {
 public:
  GemmBatch() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it is written like a vector.
  GemmBatch(std::initializer_list<GemmBatchDim> dims);

  bool empty() const { return rank_ == 0; }
  std::span<const GemmBatchDim> dims() const { return {dims_.data(), rank_}; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.begin() + rank_; }
  const GemmBatchDim& back() const { return dims_[rank_ - 1]; }
  GemmBatchDim& back() { return dims_[rank_ - 1]; }
  // Throws Error for more dims than a tensor has.
  void push_back(const GemmBatchDim& dim);
  void pop_back() { --rank_; }

  friend bool operator==(const GemmBatch& a, const GemmBatch& b) {
    return std::ranges::equal(a.dims(), b.dims());
  }

 private:
  std::array<GemmBatchDim, Shape::kMaxRank> dims_;
  size_t rank_ = 0;
};

struct GemmSpec {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool trans_a = false;  // A is stored as [k, m]
  bool trans_b = false;  // B is stored as [n, k]
  double alpha = 1;
  // 0 overwrites C, whatever C contains.
  double beta = 0;
  // The distance between stored rows, in elements; 0: rows are contiguous.
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
  // Adds a vector of n numbers to each row of C, after all else. Of one product, not of a batch,
  // with alpha = 1.
  bool adds_bias = false;
  GemmBatch batch;

  friend bool operator==(const GemmSpec&, const GemmSpec&) = default;
};

// Returns the same product with leading dimensions filled in and the smallest batch: dims of size 1
// are dropped, neighbours merged, and a dim is folded into m (one B for all rows) or k (a sum over
// the batch) if the matrices are contiguous. Throws Error for a negative size, a leading dimension
// below the row's length, and a bias for more than one product or with another alpha than 1.
GemmSpec SimplifyGemm(GemmSpec spec);

// Returns whether the product simplifies to one of two matrices, neither of them empty.
bool IsOneProduct(const GemmSpec& spec);

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
