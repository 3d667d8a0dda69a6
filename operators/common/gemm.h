// General matrix multiplication, C = alpha * op(A) * op(B) + beta * C, on row-major matrices:
// op(A) is [m, k], op(B) [k, n], C [m, n]; op transposes or not.
//
// float runs on oneDNN's matmul (2.x and 3.x), double on a blocked, threaded loop of ours (oneDNN
// has no float64). A Gemm is prepared once and may run many times, one thread at a time. In double,
// every element of C is summed in an order that depends on the sizes alone; in float the order is
// oneDNN's, which may also depend on the number of threads and on the instruction set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "framework/op/kernel.h"

namespace skiff {

// One dimension of a batch. Strides count elements. 0 for A or B: every index reads the same
// matrix. 0 for C: the products of all indices are added into one matrix.
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
  bool trans_a = false;  // A lies as [k, m]
  bool trans_b = false;  // B lies as [n, k]
  double alpha = 1;
  // 0 overwrites C, whatever it holds.
  double beta = 0;
  // Elements from a row, as it lies, to the next. 0: rows are dense.
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
  // Outermost first; any number.
  std::vector<GemmBatchDim> batch;
};

// The same product with leading dimensions filled in and the batch as small as can be: dims of size
// 1 dropped, neighbours merged, and a dim folded into m (one B for all rows) or k (a sum over the
// batch) where the matrices lie dense. Error for a negative size or a leading dimension below the
// row's length.
GemmSpec SimplifyGemm(GemmSpec spec);

// Whether it comes down to one product of two matrices, neither of them empty.
bool IsOneProduct(const GemmSpec& spec);

// T is float or double.
template <typename T>
class Gemm {
 public:
  // Asks `context` for the scratch memory that oneDNN wants. Error for an invalid spec.
  //
  // `prepacked_b`: the index of the op's input that B is. Run then reads a derived form of it, in
  // the layout that suits oneDNN best, which the plan makes anew when the input changes (but B
  // itself if that suits it best as it lies). Error unless T is float and IsOneProduct(spec). -1: B
  // is read as it lies.
  Gemm(const GemmSpec& spec, PrepareContext& context, int prepacked_b = -1);
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;

  // c must overlap neither a nor b.
  void Run(const KernelContext& context, const T* a, const T* b, T* c) const;

 private:
  class Product;
  std::unique_ptr<Product> product_;
};

extern template class Gemm<float>;
extern template class Gemm<double>;

// The float32 kernel "prepacked" of an op with the slots X, Y and Out that is the product X * Y as
// `spec_of` says: Y is read prepacked. That pays for weights that stay the same from step to step,
// which shapes don't tell: it runs where it is asked for by name, or measured to be faster.
KernelDef PrepackedProductKernel(std::function<GemmSpec(const OpContext&)> spec_of);

}  // namespace skiff
