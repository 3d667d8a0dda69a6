// Products of matrices without a library.
//
// A block computes a tile of C, each of its threads a square of it in registers. The factors' parts
// of kDepth terms go through shared memory; the next parts are loaded while the threads add up the
// present ones. Each element of C is one sum in the order of its terms, whatever the sizes. Half is
// widened on its way to shared memory.
#include "operators/common/cuda/cuda_chunks.cuh"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_product_parts.h"

namespace skiff {
namespace {

constexpr int kTile = 64;   // rows and columns
constexpr int kDepth = 16;  // terms
constexpr int kSquare = 4;  // rows and columns of a thread
constexpr int kThreadsPerSide = kTile / kSquare;
constexpr int kLoads = kTile * kDepth / kCudaThreads;  // of a thread, of either factor
static_assert(kThreadsPerSide * kThreadsPerSide == kCudaThreads);

// A multiple of a pack, and off the number of banks, so that threads that store a column of a tile
// use several banks.
constexpr int kTileStride = kTile + 4;

// A factor as a batch of matrices; `across` is the index of rows of A or columns of B.
template <typename T>
struct Factor {
  const T* data;
  int64_t batch_stride;
  int64_t across_stride;
  int64_t term_stride;
  bool is_across_first;  // neighbours in memory differ in `across`
};

template <typename T, typename Result>
struct Product {
  Factor<T> a;
  Factor<T> b;
  Result* c;
  int64_t c_stride;
  int64_t c_row;
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t tile_rows;
  int64_t tile_columns;
  int64_t tiles;  // of all matrices of the batch
  WideType<T> alpha;
  WideType<T> beta;
  const Result* bias;  // nullptr: none is added
};

// The part of a factor that one thread loads: the elements (across, term) of positions thread,
// thread + kCudaThreads, … of the tile.
template <typename T>
class TileLoader {
 public:
  __device__ TileLoader(const Factor<T>& factor, int64_t batch, int64_t first, int64_t count,
                        int64_t terms)
      : data_(factor.data + batch * factor.batch_stride + first * factor.across_stride),
        across_stride_(factor.across_stride),
        term_stride_(factor.term_stride),
        across_count_(count - first < kTile ? static_cast<int>(count - first) : kTile),
        terms_(terms),
        is_across_first_(factor.is_across_first) {}

  // Loads terms [first, first + kDepth). What lies outside the factor is left as it is: it would
  // only reach elements outside of C, and terms that aren't added.
  __device__ void Load(int64_t first) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int at = threadIdx.x + i * kCudaThreads;
      const int across = Across(at);
      const int64_t term = first + Term(at);
      if (across < across_count_ && term < terms_) {
        values_[i] = data_[across * across_stride_ + term * term_stride_];
      }
    }
  }

  __device__ void Store(int64_t first, WideType<T> (*tile)[kTileStride]) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int at = threadIdx.x + i * kCudaThreads;
      const int across = Across(at);
      const int term = Term(at);
      if (across < across_count_ && first + term < terms_) {
        tile[term][across] = Widened(values_[i]);
      }
    }
  }

 private:
  __device__ int Across(int at) const { return is_across_first_ ? at % kTile : at / kDepth; }
  __device__ int Term(int at) const { return is_across_first_ ? at / kTile : at % kDepth; }

  const T* data_;
  int64_t across_stride_;
  int64_t term_stride_;
  int across_count_;
  int64_t terms_;
  bool is_across_first_;
  T values_[kLoads] = {};
};

// Reads kSquare elements at once.
template <typename T>
__device__ void LoadSquareSide(const T* from, T* values) {
#pragma unroll
  for (int i = 0; i < kSquare; i += kPackSize<T>) {
    const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from + i);
#pragma unroll
    for (int j = 0; j < kPackSize<T>; ++j) values[i + j] = pack.values[j];
  }
}

template <typename T, typename Result>
__global__ void __launch_bounds__(kCudaThreads) MultiplyTiles(Product<T, Result> product) {
  using Wide = WideType<T>;
  alignas(16) __shared__ Wide a_tile[kDepth][kTileStride];
  alignas(16) __shared__ Wide b_tile[kDepth][kTileStride];
  const int row_in_tile = threadIdx.x / kThreadsPerSide * kSquare;
  const int column_in_tile = threadIdx.x % kThreadsPerSide * kSquare;
  for (int64_t tile = blockIdx.x; tile < product.tiles; tile += gridDim.x) {
    const int64_t batch = tile / (product.tile_rows * product.tile_columns);
    const int64_t first_row = tile / product.tile_columns % product.tile_rows * kTile;
    const int64_t first_column = tile % product.tile_columns * kTile;
    TileLoader<T> a(product.a, batch, first_row, product.m, product.k);
    TileLoader<T> b(product.b, batch, first_column, product.n, product.k);
    const int64_t row = first_row + row_in_tile;
    const int64_t column = first_column + column_in_tile;
    // Threads beside C only load.
    const bool computes = row < product.m && column < product.n;
    Wide sums[kSquare][kSquare] = {};
    a.Load(0);
    b.Load(0);
    for (int64_t first = 0; first < product.k; first += kDepth) {
      __syncthreads();
      a.Store(first, a_tile);
      b.Store(first, b_tile);
      __syncthreads();
      a.Load(first + kDepth);
      b.Load(first + kDepth);
      if (!computes) continue;
      const auto add_term = [&](int term) {
        Wide of_a[kSquare];
        Wide of_b[kSquare];
        LoadSquareSide(&a_tile[term][row_in_tile], of_a);
        LoadSquareSide(&b_tile[term][column_in_tile], of_b);
#pragma unroll
        for (int i = 0; i < kSquare; ++i) {
#pragma unroll
          for (int j = 0; j < kSquare; ++j) sums[i][j] += of_a[i] * of_b[j];
        }
      };
      if (product.k - first >= kDepth) {
#pragma unroll
        for (int term = 0; term < kDepth; ++term) add_term(term);
      } else {
        for (int term = 0; term < product.k - first; ++term) add_term(term);
      }
    }
    if (!computes) continue;
    Result* c = product.c + batch * product.c_stride + row * product.c_row + column;
#pragma unroll
    for (int i = 0; i < kSquare; ++i) {
      if (row + i >= product.m) break;
#pragma unroll
      for (int j = 0; j < kSquare; ++j) {
        if (column + j >= product.n) break;
        Result* to = c + i * product.c_row + j;
        Wide value = product.alpha * sums[i][j];
        // With beta = 0, NaN in C doesn't matter.
        if (product.beta != Wide(0)) value += product.beta * Widened(*to);
        if (product.bias != nullptr) value += Widened(product.bias[column + j]);
        *to = Rounded<Result>(value);
      }
    }
  }
}

template <typename Result>
__global__ void CopyToRows(const Result* bias, int64_t columns, int64_t elements,
                           int64_t row_distance, Result* c) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const CudaDivision at = Divide(i, columns);
    c[at.quotient * row_distance + at.rest] = bias[at.rest];
  }
}

int64_t TilesOf(int64_t count) { return (count + kTile - 1) / kTile; }

}  // namespace

template <typename T, typename Result>
void RunPlainProduct(const CudaProductShape& shape, CUstream_st* stream, const T* a, const T* b,
                     Result* c, WideType<T> alpha, WideType<T> beta, const Result* bias) {
  Product<T, Result> product{};
  product.a = {a, shape.stride_a, shape.transpose_a ? 1 : shape.lda,
               shape.transpose_a ? shape.lda : 1, shape.transpose_a};
  product.b = {b, shape.stride_b, shape.transpose_b ? shape.ldb : 1,
               shape.transpose_b ? 1 : shape.ldb, !shape.transpose_b};
  product.c = c;
  product.c_stride = shape.stride_c;
  product.c_row = shape.ldc;
  product.m = shape.m;
  product.n = shape.n;
  product.k = shape.k;
  product.tile_rows = TilesOf(shape.m);
  product.tile_columns = TilesOf(shape.n);
  product.tiles = shape.batches * product.tile_rows * product.tile_columns;
  product.alpha = alpha;
  product.beta = beta;
  product.bias = bias;
  MultiplyTiles<T, Result><<<CudaBlocks(product.tiles), kCudaThreads, 0, stream>>>(product);
  CheckLaunch("product of matrices");
}

template <typename Result>
void SetRows(const CudaProductShape& shape, CUstream_st* stream, const Result* bias, Result* c) {
  const int64_t elements = shape.m * shape.n;
  CopyToRows<Result><<<CudaBlocksOfThreads(elements), kCudaThreads, 0, stream>>>(
      bias, shape.n, elements, shape.ldc, c);
  CheckLaunch("bias of a product of matrices");
}

#define SKIFF_PRODUCT(T, Result)                                                            \
  template void RunPlainProduct<T, Result>(const CudaProductShape&, CUstream_st*, const T*, \
                                           const T*, Result*, WideType<T>, WideType<T>,     \
                                           const Result*)
SKIFF_PRODUCT(float, float);
SKIFF_PRODUCT(double, double);
SKIFF_PRODUCT(BFloat16, BFloat16);
SKIFF_PRODUCT(Float16, Float16);
SKIFF_PRODUCT(BFloat16, float);
SKIFF_PRODUCT(Float16, float);
#undef SKIFF_PRODUCT

template void SetRows<float>(const CudaProductShape&, CUstream_st*, const float*, float*);
template void SetRows<double>(const CudaProductShape&, CUstream_st*, const double*, double*);
template void SetRows<BFloat16>(const CudaProductShape&, CUstream_st*, const BFloat16*, BFloat16*);
template void SetRows<Float16>(const CudaProductShape&, CUstream_st*, const Float16*, Float16*);

}  // namespace skiff
