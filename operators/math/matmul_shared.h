// Batched products of matrices, which matmul_v2, matmul and bmm have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"
#include "operators/common/gemm.h"

namespace skiff {

// A factor as a batch of matrices.
struct MatrixFactor {
  Shape batch;
  int64_t rows = 1;  // as it lies, not transposed
  int64_t columns = 1;
  bool transposed = false;

  // After transposition.
  int64_t height() const { return transposed ? columns : rows; }
  int64_t width() const { return transposed ? rows : columns; }
};

// Out = alpha · op(X) · op(Y), op transposing or not; the batches of the factors are aligned at the
// back and broadcast to that of Out.
struct MatrixProduct {
  MatrixFactor x;
  MatrixFactor y;
  Shape batch;  // of Out
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  double alpha = 1;
};

// Dim `axis` of a batch that is aligned at the back with one of `rank` dims; 1 before its first.
int64_t AlignedDim(const Shape& batch, int rank, int axis);

// Sets m, k and n from the factors. Error, with the shapes of X and Y, if they don't fit.
void SetProductSizes(const OpContext& context, MatrixProduct* product);
// Error unless X and Y have one dtype and at least one dim each.
void CheckFactors(const OpContext& context);

GemmSpec SpecOf(const MatrixProduct& product);
// 2 · m · k · n for each product of the batch; see OpDef::flop.
double FlopOf(const MatrixProduct& product);

// From slots X and Y to Out. T is float or double; every dim must be known.
template <typename T>
std::unique_ptr<Kernel> PrepareMatrixProduct(PrepareContext& context, const MatrixProduct& product);
// From X, Y and Out@GRAD to X@GRAD and Y@GRAD, each of which may be absent. With P = op(X), Q =
// op(Y): dP = alpha · dOut · Q', dQ = alpha · P' · dOut, summed over broadcast dims.
template <typename T>
std::unique_ptr<Kernel> PrepareMatrixProductGrad(PrepareContext& context,
                                                 const MatrixProduct& product);

extern template std::unique_ptr<Kernel> PrepareMatrixProduct<float>(PrepareContext&,
                                                                    const MatrixProduct&);
extern template std::unique_ptr<Kernel> PrepareMatrixProduct<double>(PrepareContext&,
                                                                     const MatrixProduct&);
extern template std::unique_ptr<Kernel> PrepareMatrixProductGrad<float>(PrepareContext&,
                                                                        const MatrixProduct&);
extern template std::unique_ptr<Kernel> PrepareMatrixProductGrad<double>(PrepareContext&,
                                                                         const MatrixProduct&);

// The gradient op <type>_grad without attributes and shape rule.
OpDef MatrixProductGradDef(const std::string& type);

}  // namespace skiff
