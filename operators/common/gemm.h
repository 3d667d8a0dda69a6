// General matrix multiplication, C = alpha * op(A) * op(B) + beta * C, on row-major matrices: op(A)
// is [m, k], op(B) [k, n], C [m, n]; op transposes or not.
//
// float runs on oneDNN's matmul (2.x and 3.x), double on a blocked, threaded loop of our own, since
// oneDNN has no float64. A Gemm is prepared once and can run many times, one thread at a time. In
// double, the order in which each element of C is summed depends only on the sizes. In float it is
// oneDNN's order, which may also depend on the number of threads and on the instruction set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "framework/op/kernel.h"

namespace skiff {

// One dimension of a batch. Strides count elements. Stride 0 of A or B: every index reads the same
// matrix. Stride 0 of C: the products of all indices are summed into one matrix.
struct GemmBatchDim {
  int64_t size = 1;
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
};

struct GemmSpec {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool trans_a = false;  // A is stored as [k, m]
  bool trans_b = false;  // B is stored as [n, k]
  double alpha = 1;
  // 0 overwrites C, whatever it contains.
  double beta = 0;
  // The distance between stored rows, in elements; 0: rows are contiguous.
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
  // Outermost first; any number.
  std::vector<GemmBatchDim> batch;
};

// Returns the same product with leading dimensions filled in and the smallest batch: dims of size 1
// are dropped, neighbours merged, and a dim is folded into m (one B for all rows) or k (a sum over
// the batch) if the matrices are contiguous. Throws Error for a negative size or a leading
// dimension below the row's length.
GemmSpec SimplifyGemm(GemmSpec spec);

// Returns whether the product simplifies to one of two matrices, neither of them empty.
bool IsOneProduct(const GemmSpec& spec);

// T is float or double.
template <typename T>
class Gemm {
 public:
  // Requests the scratch memory that oneDNN needs from `context`. Throws Error for an invalid spec.
  //
  // `prepacked_b` is the index of the op's input that is B, or -1. Run then reads a derived form of
  // B in the layout that suits oneDNN best, or B itself if that is its own layout. The plan
  // recomputes the form when the input changes. Throws Error unless T is float and
  // IsOneProduct(spec). With -1, Run reads B as it is.
  Gemm(const GemmSpec& spec, PrepareContext& context, int prepacked_b = -1);
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;

  // Computes the product. c must overlap neither a nor b.
  void Run(const KernelContext& context, const T* a, const T* b, T* c) const;

 private:
  class Product;
  std::unique_ptr<Product> product_;
};

extern template class Gemm<float>;
extern template class Gemm<double>;

// Returns the kernel of an op with slots X, Y and Out that computes the product X * Y that `spec`
// specifies. T is float or double. With `prepacks_y` the kernel reads Y prepacked, as Gemm does.
template <typename T>
std::unique_ptr<Kernel> PrepareProduct(PrepareContext& context, const GemmSpec& spec,
                                       bool prepacks_y = false);

extern template std::unique_ptr<Kernel> PrepareProduct<float>(PrepareContext&, const GemmSpec&,
                                                              bool);
extern template std::unique_ptr<Kernel> PrepareProduct<double>(PrepareContext&, const GemmSpec&,
                                                               bool);

// Returns the float32 kernel "prepacked" of an op with slots X, Y and Out that computes the product
// X * Y that `spec_of` specifies. It reads Y prepacked, which pays if Y stays the same from step to
// step. Shapes don't tell that, so the kernel runs only when requested by name or measured to be
// faster.
KernelDef PrepackedProductKernel(std::function<GemmSpec(const OpContext&)> spec_of);

}  // namespace skiff
