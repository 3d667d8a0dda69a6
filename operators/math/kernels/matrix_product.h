// Batched matrix products, shared by matmul_v2, matmul and bmm.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"
#include "operators/common/cpu/gemm.h"

namespace skiff {

// A factor as a batch of matrices.
struct MatrixFactor {
  Shape batch;
  int64_t rows = 1;  // as stored, before transposition
  int64_t columns = 1;
  bool transposed = false;

  // The sizes after transposition.
  int64_t height() const { return transposed ? columns : rows; }
  int64_t width() const { return transposed ? rows : columns; }
};

// Out = alpha · op(X) · op(Y), where op transposes or not. The batches of the factors are aligned
// at their last dims and broadcast to the batch of Out.
struct MatrixProduct {
  MatrixFactor x;
  MatrixFactor y;
  Shape batch;  // of Out
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  double alpha = 1;
};

// Returns dim `axis` of a batch of rank `rank` to whose last dims `batch` is aligned; 1 for an axis
// before the first dim of `batch`.
int64_t AlignedDim(const Shape& batch, int rank, int axis);

// Sets m, k and n from the factors, which must fit.
void SetProductSizes(MatrixProduct* product);
// The same for the op's X and Y. Throws Error, with both shapes, if the shapes don't fit.
void SetProductSizes(const OpContext& context, MatrixProduct* product);
// Throws Error unless X and Y have the same dtype and at least one dim each.
void CheckFactors(const OpContext& context);

// Returns the product from X and Y to Out. Every dim must be known.
GemmSpec SpecOf(const MatrixProduct& product);
// Returns the product from Out@GRAD and Y to X@GRAD, in this order; from Y and Out@GRAD if X is
// stored transposed.
GemmSpec GradientOfX(const MatrixProduct& product);
// Returns the product from X and Out@GRAD to Y@GRAD; from Out@GRAD and X if Y is stored transposed.
GemmSpec GradientOfY(const MatrixProduct& product);

// Returns the product of X and Y with these shapes, which have passed the op's checks. Mustn't
// allocate.
using MatrixProductOfShapes = std::function<MatrixProduct(const Shape& x, const Shape& y)>;

// Return the products of ops, as their attributes say.
MatrixProductOfShapes BmmProduct(const OpContext& context);
MatrixProductOfShapes MatmulProduct(const OpContext& context);
MatrixProductOfShapes MatmulV2Product(const OpContext& context);
MatrixProductOfShapes MulProduct(const OpContext& context);

// Of ops that take a tensor as a matrix, whose first dims are the rows (Fluid's mul):
// Returns the attribute with the number of these dims of `slot`, at least one.
AttrDef RowDimsAttr(StaticText name, StaticText slot);
// Returns the product of dims [begin, end), or -1 if one is unknown.
int64_t FlattenDims(const Shape& shape, int begin, int end);
// Whether x_num_col_dims is 1: the rows of the matrix X are those of the tensor.
bool HasRowsAlone(const OpContext& context);

// Returns the product of `linear`, which adds its Bias.
ProductOfShapes LinearProduct(const OpContext& context);

// Returns the kernel from X and Y to Out. T is that of Gemm.
template <typename T>
std::unique_ptr<Kernel> PrepareMatrixProduct(PrepareContext& context,
                                             const MatrixProductOfShapes& product_of) {
  return PrepareProduct<T>(
      context, [product_of](const Shape& x, const Shape& y) { return SpecOf(product_of(x, y)); });
}
// Returns the kernel "prepacked" (PrepackedProductKernel). `product_of` takes the op's attributes.
KernelDef PrepackedMatrixProductKernel(
    std::function<MatrixProductOfShapes(const OpContext&)> product_of);
// Returns 2 · m · k · n times the size of the batch; see OpDef::flop.
double FlopOf(const MatrixProduct& product);

// Returns the kernel from X, Y and Out@GRAD to X@GRAD and Y@GRAD, either of which may be absent.
// With P = op(X), Q = op(Y): dP = alpha · dOut · Q', dQ = alpha · P' · dOut, summed over broadcast
// dims. T is that of Gemm; every dim must be known.
template <typename T>
std::unique_ptr<Kernel> PrepareMatrixProductGrad(PrepareContext& context,
                                                 const MatrixProductOfShapes& product_of);

extern template std::unique_ptr<Kernel> PrepareMatrixProductGrad<float>(
    PrepareContext&, const MatrixProductOfShapes&);
extern template std::unique_ptr<Kernel> PrepareMatrixProductGrad<double>(
    PrepareContext&, const MatrixProductOfShapes&);
extern template std::unique_ptr<Kernel> PrepareMatrixProductGrad<BFloat16>(
    PrepareContext&, const MatrixProductOfShapes&);

// Adds a matrix product of X and Y to Out, the gradient op, and the plain kernels. `def` lacks the
// gradient and the FLOP. `product_of` takes the attributes of either op.
void AddMatrixProduct(OpRegistry& registry, OpDef def,
                      MatrixProductOfShapes (*product_of)(const OpContext& context));

}  // namespace skiff
