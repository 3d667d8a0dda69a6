// Arithmetic: choices, reductions, matrix products. Of two operands element by element:
// elementwise.h. Errors of all layers: layers.h.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// x where the condition holds, else y. All three operands are broadcast to one shape, the last dims
// aligned, as in NumPy. Unknown dims (-1) of several operands at one place are taken for equal. A
// number has the dtype of the other operand; two numbers make float32.
Variable Where(const Variable& condition, const Variable& x, const Variable& y,
               Site site = Site::current());
Variable Where(const Variable& condition, const Variable& x, double y, Site site = Site::current());
Variable Where(const Variable& condition, double x, const Variable& y, Site site = Site::current());
Variable Where(const Variable& condition, double x, double y, Site site = Site::current());

// Clips each element to [min, max]. Throws an Error (kInvalidArgument) if min > max.
Variable Clip(const Variable& x, float min, float max, Site site = Site::current());
// x · max_norm / max(max_norm, |x|₂)
Variable ClipByNorm(const Variable& x, float max_norm, Site site = Site::current());

// The mean of all elements, a scalar (rank 0).
Variable Mean(const Variable& x, Site site = Site::current());
// The element-wise sum of variables of one shape. Throws an Error (kInvalidArgument) if there is
// none.
Variable Sum(const std::vector<Variable>& xs, Site site = Site::current());

struct ReduceOptions {
  std::vector<int64_t> dims = {};  // negative from the back; empty: all
  bool keep_dim = false;           // leaves extents of 1
};
// The sums over those dims; a scalar (rank 0) if no dim is left.
Variable ReduceSum(const Variable& x, const ReduceOptions& options = {},
                   Site site = Site::current());

// The same for means, largest and smallest elements, and products; whether all or any of some bools
// are true.
Variable ReduceMean(const Variable& x, const ReduceOptions& options = {},
                    Site site = Site::current());
Variable ReduceMax(const Variable& x, const ReduceOptions& options = {},
                   Site site = Site::current());
Variable ReduceMin(const Variable& x, const ReduceOptions& options = {},
                   Site site = Site::current());
Variable ReduceProd(const Variable& x, const ReduceOptions& options = {},
                    Site site = Site::current());
Variable ReduceAll(const Variable& x, const ReduceOptions& options = {},
                   Site site = Site::current());
Variable ReduceAny(const Variable& x, const ReduceOptions& options = {},
                   Site site = Site::current());

// The logarithm of the sum of exp(x) over the dims. The largest element is subtracted before the
// exponential, so that nothing overflows.
Variable LogSumExp(const Variable& x, const ReduceOptions& options = {},
                   Site site = Site::current());

struct VarianceOptions {
  std::vector<int64_t> dims = {};  // as in ReduceOptions
  bool keep_dim = false;
  bool unbiased = true;  // divides by n - 1 instead of n, the number of elements of each variance
};
// The mean squared distance from the mean, over the dims, in two passes: first the means, then the
// squares, so that nothing cancels. Throws an Error (kInvalidArgument) if it is unbiased and n is
// known to be less than 2, or if x isn't of floats; where only a run knows n = 1, the result is
// NaN, as PyTorch's. Half is computed in float32.
Variable Variance(const Variable& x, const VarianceOptions& options = {},
                  Site site = Site::current());
// The square root of the variance. Its gradient is 0 where the deviation is 0, as PyTorch's.
Variable Std(const Variable& x, const VarianceOptions& options = {}, Site site = Site::current());

// The sum of the squares of all elements, [1].
Variable SquaredL2Norm(const Variable& x, Site site = Site::current());
// Whether no element is infinite or NaN: one bool, [1].
Variable IsFinite(const Variable& x, Site site = Site::current());

struct CumsumOptions {
  int64_t axis = -1;       // negative from the back
  bool flatten = false;    // over all elements instead, to a variable of rank 1
  bool exclusive = false;  // a sum leaves out the element at its own place
  bool reverse = false;    // the sums start at the last element
};
// At each place the sum of the elements up to it.
Variable Cumsum(const Variable& x, const CumsumOptions& options = {}, Site site = Site::current());

struct MulOptions {
  // How many leading dims become the rows of each matrix.
  int64_t x_num_col_dims = 1;
  int64_t y_num_col_dims = 1;
};
// The product of x and y, each flattened to a matrix.
Variable Mul(const Variable& x, const Variable& y, const MulOptions& options = {},
             Site site = Site::current());

struct MatMulOptions {
  bool transpose_x = false;
  bool transpose_y = false;
  float alpha = 1.0f;
};
// alpha · x · y over the last two dims, the leading ones being a batch.
Variable MatMul(const Variable& x, const Variable& y, const MatMulOptions& options = {},
                Site site = Site::current());

// Products of matrices, x [batch, m, k] and y [batch, k, n].
Variable Bmm(const Variable& x, const Variable& y, Site site = Site::current());
// The sums of x · y over the last dim, of vectors or of the rows of matrices.
Variable Dot(const Variable& x, const Variable& y, Site site = Site::current());

struct AddmmOptions {
  float alpha = 1.0f;
  float beta = 1.0f;
};
// beta · input + alpha · x · y for matrices x and y; input is broadcast.
Variable Addmm(const Variable& input, const Variable& x, const Variable& y,
               const AddmmOptions& options = {}, Site site = Site::current());

// log(softmax(x)) along an axis, negative from the back.
Variable LogSoftmax(const Variable& x, int64_t axis = -1, Site site = Site::current());

struct ArgExtremeOptions {
  int64_t axis = -1;  // negative from the back
  bool keep_dim = false;
  bool flatten = false;  // among all elements, whatever the axis
};
// The place of the largest (smallest) element, int64.
Variable ArgMax(const Variable& x, const ArgExtremeOptions& options = {},
                Site site = Site::current());
Variable ArgMin(const Variable& x, const ArgExtremeOptions& options = {},
                Site site = Site::current());

struct ArgsortOptions {
  int64_t axis = -1;  // negative from the back
  bool descending = false;
};
struct ArgsortResult {
  Variable values = {};
  Variable indices = {};  // where they were in x, int64
};
// x sorted along an axis.
ArgsortResult Argsort(const Variable& x, const ArgsortOptions& options = {},
                      Site site = Site::current());

struct PNormOptions {
  float order = 2.0f;                // p, or an infinity
  std::optional<int64_t> axis = {};  // negative from the back; none: of all elements
  bool keep_dim = false;
};
// (the sum of |x|^p)^(1/p)
Variable PNorm(const Variable& x, const PNormOptions& options = {}, Site site = Site::current());
// x / sqrt(sum of x² along the axis + epsilon)
Variable L2Normalize(const Variable& x, int64_t axis, float epsilon = 1e-12f,
                     Site site = Site::current());
// The cosines between the rows of x [N, ...] and y [N or 1, ...]: [N, 1].
Variable CosSim(const Variable& x, const Variable& y, Site site = Site::current());

}  // namespace skiff::layers
