// The vector loops of reductions over floats, each on the calling thread. Internal to
// array_reduction.cc and reduce.cc, which divide the work into blocks, tiles and threads.
#pragma once

#include <cstdint>

namespace skiff::reduction {

// Return the sum of x[i], of x[i]² and of a[i] · b[i]. They add up in float, so the rounding error
// grows with `count`: callers pass blocks of some thousand elements and add the results in float64.
double SumOfBlock(const float* x, int64_t count);
double SumOfSquaresOfBlock(const float* x, int64_t count);
double SumOfProductsOfBlock(const float* a, const float* b, int64_t count);
// Returns the product of x[i], computed in float64; 1 for no elements.
double ProductOfBlock(const float* x, int64_t count);
// Return the largest (smallest) of `start` and x[i], or NaN if there is one.
float MaxOfBlock(const float* x, int64_t count, float start);
float MinOfBlock(const float* x, int64_t count, float start);

// The following reduce each column j of x[rows, columns], whose rows are `stride` elements apart,
// into the j-th result, which goes on from its present value.

// The most columns that AddColumns takes. The results of as many columns fit into the first-level
// cache.
inline constexpr int64_t kTileColumns = 1024;

// Adds up the rows in float and adds that to totals[j]. Pass few rows.
void AddColumns(const float* x, int64_t stride, int64_t rows, int64_t columns, double* totals);
void MultiplyColumns(const float* x, int64_t stride, int64_t rows, int64_t columns,
                     double* products);
void MaxOfColumns(const float* x, int64_t stride, int64_t rows, int64_t columns, float* best);
void MinOfColumns(const float* x, int64_t stride, int64_t rows, int64_t columns, float* best);

// out[i] = a[i] + b[i]; out may be a or b.
void AddFloats(const float* a, const float* b, float* out, int64_t count);
// sums[i] += x[i]
void AddFloatsToDoubles(const float* x, double* sums, int64_t count);
// out[i] = factor * x[i]; out may be x.
void ScaleFloats(const float* x, float factor, float* out, int64_t count);

// Set dx[i] to the gradient where x[i] equals out, else to 0. SpreadOne takes one value of `out`
// and `gradient` for all elements, SpreadEach one for each. dx may be x.
void SpreadOne(const float* x, const float* out, const float* gradient, float* dx, int64_t count);
void SpreadEach(const float* x, const float* out, const float* gradient, float* dx, int64_t count);

}  // namespace skiff::reduction
