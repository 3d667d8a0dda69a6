// float: SimplifyGemm reduces the batch to as few dims as possible, and a oneDNN matmul runs over
// the dims with separate results. Dims whose products are summed (stride 0 of C) are a loop around
// it, in which all but the first product add to C. For other sizes than those prepared,
// dnnl_sgemm multiplies one pair of matrices after the other.
//
// double: C is cut into blocks of 32 x 64, which are independent of each other. A block packs
// panels of A and B of depth 64, 16 and 32 KiB, which stay in the first two levels of the cache,
// and multiplies them in tiles of 4 x 8 sums, which stay in registers. An element's sum runs along
// k in order, 64 terms at a time.
#include "operators/common/gemm.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/onednn.h"

namespace skiff {
namespace {

int64_t RowsOfA(const GemmSpec& spec) { return spec.trans_a ? spec.k : spec.m; }
int64_t ColumnsOfA(const GemmSpec& spec) { return spec.trans_a ? spec.m : spec.k; }
int64_t RowsOfB(const GemmSpec& spec) { return spec.trans_b ? spec.n : spec.k; }
int64_t ColumnsOfB(const GemmSpec& spec) { return spec.trans_b ? spec.k : spec.n; }

// Returns the leading dimension, which must be at least 1 even for matrices without columns.
int64_t LeadingDim(int64_t given, int64_t columns, const char* matrix) {
  SKIFF_ENFORCE(given == 0 || given >= columns, kInvalidArgument, "gemm: leading dimension of ",
                matrix, " is ", given, ", expected at least ", columns);
  return given == 0 ? std::max<int64_t>(columns, 1) : given;
}

// Folds the innermost batch dim into m or k. Returns false if the matrices aren't contiguous in
// that way.
bool FoldInnermost(GemmSpec* spec) {
  if (spec->batch.empty()) return false;
  const GemmBatchDim& dim = spec->batch.back();
  const bool rows_of_a_follow = dim.stride_a == RowsOfA(*spec) * spec->lda;
  if (dim.stride_b == 0 && dim.stride_c == spec->m * spec->ldc && !spec->trans_a &&
      rows_of_a_follow) {
    // All matrices have the same B, and the rows of A and C continue from one to the next.
    spec->m *= dim.size;
  } else if (dim.stride_c == 0 && spec->trans_a && !spec->trans_b && rows_of_a_follow &&
             dim.stride_b == RowsOfB(*spec) * spec->ldb) {
    // The products are summed into one C: A, stored as [k, m], and B, [k, n], continue along k.
    spec->k *= dim.size;
  } else {
    return false;
  }
  spec->batch.pop_back();
  return true;
}

// Merges neighbouring dims that all three matrices walk as one, so that oneDNN gets few dims.
void MergeBatchDims(GemmBatch* batch) {
  GemmBatch merged;
  for (const GemmBatchDim& dim : *batch) {
    if (dim.size == 1) continue;
    if (!merged.empty()) {
      GemmBatchDim& outer = merged.back();
      if (outer.stride_a == dim.size * dim.stride_a && outer.stride_b == dim.size * dim.stride_b &&
          outer.stride_c == dim.size * dim.stride_c) {
        outer = {outer.size * dim.size, dim.stride_a, dim.stride_b, dim.stride_c};
        continue;
      }
    }
    merged.push_back(dim);
  }
  *batch = merged;
}

struct Offsets {
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};

// Returns where the matrices of batch index `index` start.
Offsets BatchOffsets(const GemmBatch& batch, int64_t index) {
  Offsets offsets;
  for (const GemmBatchDim& dim : std::ranges::reverse_view(batch.dims())) {
    const int64_t i = index % dim.size;
    index /= dim.size;
    offsets.a += i * dim.stride_a;
    offsets.b += i * dim.stride_b;
    offsets.c += i * dim.stride_c;
  }
  return offsets;
}

int64_t BatchCount(const GemmBatch& batch) {
  int64_t count = 1;
  for (const GemmBatchDim& dim : batch) count *= dim.size;
  return count;
}

// A simplified product, with the dims of its batch that have separate results, and those whose
// products are summed.
struct PlannedProduct {
  explicit PlannedProduct(const GemmSpec& simple) : spec(simple) {
    for (const GemmBatchDim& dim : spec.batch) {
      (dim.stride_c == 0 ? summed : kept).push_back(dim);
    }
    kept_count = BatchCount(kept);
    summed_count = BatchCount(summed);
  }

  bool is_empty() const { return spec.m == 0 || spec.n == 0 || kept_count == 0; }
  bool has_terms() const { return spec.k > 0 && summed_count > 0; }

  GemmSpec spec;
  GemmBatch kept;
  GemmBatch summed;
  int64_t kept_count = 1;
  int64_t summed_count = 1;
};

// Sets C = beta * C: the result if a product has no terms. For beta = 0 this overwrites NaN, too.
template <typename T>
void ScaleMatrices(const PlannedProduct& product, T* c) {
  const GemmSpec& spec = product.spec;
  for (int64_t i = 0; i < product.kept_count * spec.m; ++i) {
    T* row = c + BatchOffsets(product.kept, i / spec.m).c + i % spec.m * spec.ldc;
    for (int64_t j = 0; j < spec.n; ++j) {
      row[j] = spec.beta == 0 ? T{0} : static_cast<T>(spec.beta) * row[j];
    }
  }
}

// The multiplications that are worth a thread.
constexpr int64_t kGrainWork = 32768;

// ---- float: oneDNN

// A stride of 0 becomes a dim of 1, which oneDNN broadcasts.
dnnl::memory::desc Describe(int64_t rows, int64_t columns, int64_t row_stride,
                            int64_t column_stride, std::span<const GemmBatchDim> kept,
                            int64_t GemmBatchDim::*stride) {
  const size_t rank = kept.size() + 2;
  dnnl::memory::dims dims(rank);
  dnnl::memory::dims strides(rank);
  dims[rank - 2] = rows;
  dims[rank - 1] = columns;
  strides[rank - 2] = row_stride;
  strides[rank - 1] = column_stride;
  // The stride of a dim of 1 is never used as a step, but oneDNN looks at it to recognise a
  // contiguous batch.
  int64_t extent = std::max(rows * row_stride, columns * column_stride);
  for (size_t i = kept.size(); i-- > 0;) {
    const bool is_broadcast = kept[i].*stride == 0;
    dims[i] = is_broadcast ? 1 : kept[i].size;
    strides[i] = is_broadcast ? extent : kept[i].*stride;
    extent = std::max(extent, dims[i] * strides[i]);
  }
  return OnednnStrided(dims, strides);
}

dnnl::primitive_attr ScaleAndAdd(double alpha, double beta) {
  dnnl::post_ops post_ops;
  if (alpha != 1) AppendOnednnScale(static_cast<float>(alpha), &post_ops);
  if (beta != 0) post_ops.append_sum(static_cast<float>(beta));
  dnnl::primitive_attr attributes = OnednnAttributes();
  attributes.set_post_ops(post_ops);
  return attributes;
}

class MatmulPrimitive {
 public:
  MatmulPrimitive(const PlannedProduct& product, double beta, PrepareContext& context,
                  int prepacked_b) {
    const GemmSpec& spec = product.spec;
    const std::span<const GemmBatchDim> kept = product.kept.dims();
    const int64_t a_row = spec.trans_a ? 1 : spec.lda;
    const int64_t a_column = spec.trans_a ? spec.lda : 1;
    const int64_t b_row = spec.trans_b ? 1 : spec.ldb;
    const int64_t b_column = spec.trans_b ? spec.ldb : 1;
    const auto a = Describe(spec.m, spec.k, a_row, a_column, kept, &GemmBatchDim::stride_a);
    const auto b = Describe(spec.k, spec.n, b_row, b_column, kept, &GemmBatchDim::stride_b);
    const auto c = Describe(spec.m, spec.n, spec.ldc, 1, kept, &GemmBatchDim::stride_c);
    const auto description = OnednnMatmul(a, prepacked_b < 0 ? b : OnednnAny({spec.k, spec.n}),
                                          dnnl::memory::desc(), c, ScaleAndAdd(spec.alpha, beta));
    const auto wanted_b = description.weights_desc();
    if (prepacked_b >= 0 && wanted_b != b) packed_b_ = Prepack(b, wanted_b, prepacked_b, context);
    call_ = OnednnCall(dnnl::matmul(description));
    call_.AddArgument(DNNL_ARG_SRC, a);
    call_.AddArgument(DNNL_ARG_WEIGHTS, wanted_b);
    call_.AddArgument(DNNL_ARG_DST, c);
    const auto scratchpad = description.scratchpad_desc();
    if (OnednnBytes(scratchpad) == 0) return;
    call_.AddArgument(DNNL_ARG_SCRATCHPAD, scratchpad);
    workspace_ = context.RequestWorkspace(OnednnBytes(scratchpad));
  }

  void Run(const KernelContext& context, const float* a, const float* b, float* c) {
    call_.SetData(DNNL_ARG_SRC, a);
    call_.SetData(DNNL_ARG_WEIGHTS, packed_b_ < 0 ? b : context.derived(packed_b_));
    call_.SetData(DNNL_ARG_DST, c);
    if (workspace_ >= 0) call_.SetData(DNNL_ARG_SCRATCHPAD, context.workspace(workspace_));
    call_.Run();
  }

  bool packs_b() const { return packed_b_ >= 0; }

 private:
  // Requests the derived form of B. Returns its index.
  static int Prepack(const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted, int input,
                     PrepareContext& context) {
    return context.RequestDerivedForm(
        {.inputs = {input},
         .bytes = OnednnBytes(wanted),
         .refresh = [reorder = OnednnReorder(stored, wanted), input](const KernelContext& run,
                                                                     void* derived) mutable {
           reorder.SetData(DNNL_ARG_FROM, run.input(input).raw_data());
           reorder.SetData(DNNL_ARG_TO, derived);
           reorder.Run();
         }});
  }

  OnednnCall call_;
  int workspace_ = -1;
  int packed_b_ = -1;
};

// Multiplies matrices for which no primitive is prepared.
void MultiplyUnprepared(const PlannedProduct& product, double beta, const float* a, const float* b,
                        float* c) {
  const GemmSpec& spec = product.spec;
  const OnednnSgemmSizes sizes{.m = spec.m,
                               .n = spec.n,
                               .k = spec.k,
                               .trans_a = spec.trans_a,
                               .trans_b = spec.trans_b,
                               .lda = spec.lda,
                               .ldb = spec.ldb,
                               .ldc = spec.ldc};
  const auto multiply = [&](int64_t i) {
    const Offsets at = BatchOffsets(product.kept, i);
    return OnednnSgemm(sizes, static_cast<float>(spec.alpha), a + at.a, b + at.b,
                       static_cast<float>(beta), c + at.c);
  };
  bool succeeds = true;
  if (product.kept_count == 1) {
    succeeds = multiply(0);
  } else {
    // Threads share the matrices, which tend to be small.
    const int64_t grain = std::max<int64_t>(1, kGrainWork / (spec.m * spec.n * spec.k));
    std::atomic<bool> failed{false};
    ParallelFor(product.kept_count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (!multiply(i)) failed.store(true, std::memory_order_relaxed);
      }
    });
    succeeds = !failed.load();
  }
  SKIFF_ENFORCE(succeeds, kFailedPrecondition, "oneDNN could not multiply matrices of ", spec.m,
                " x ", spec.k, " and ", spec.k, " x ", spec.n);
}

// ---- double: blocks that fit into the caches

constexpr int64_t kBlockRows = 32;
constexpr int64_t kBlockColumns = 64;
constexpr int64_t kBlockDepth = 64;
// Divide the block's sizes, so that no tile extends beyond the packed panels.
constexpr int64_t kTileRows = 4;
constexpr int64_t kTileColumns = 8;

// sum[4][8] += panel of A, [depth][4], times panel of B, [depth][8].
void MultiplyTile(const double* a, const double* b, int64_t depth, double* sum) {
  // A local array of fixed size, so that the compiler can keep the sums in registers.
  double tile[kTileRows][kTileColumns] = {};
  for (int64_t p = 0; p < depth; ++p, a += kTileRows, b += kTileColumns) {
    for (int64_t i = 0; i < kTileRows; ++i) {
      for (int64_t j = 0; j < kTileColumns; ++j) tile[i][j] += a[i] * b[j];
    }
  }
  for (int64_t i = 0; i < kTileRows; ++i) {
    for (int64_t j = 0; j < kTileColumns; ++j) sum[i * kBlockColumns + j] += tile[i][j];
  }
}

// Copies a block of `lines` x `depth` numbers into panels of `width` lines each, with zeros after
// the last line. Element (line, p) is source[line * line_stride + p * depth_stride]. So
// MultiplyTile reads contiguous memory, whatever is transposed, and needs no code for edges.
void Pack(const double* source, int64_t line_stride, int64_t depth_stride, int64_t lines,
          int64_t depth, int64_t width, double* panels) {
  for (int64_t first = 0; first < lines; first += width) {
    for (int64_t p = 0; p < depth; ++p) {
      for (int64_t i = first; i < first + width; ++i) {
        *panels++ = i < lines ? source[i * line_stride + p * depth_stride] : 0.0;
      }
    }
  }
}

// Computes the block of C that starts at (row, column).
void MultiplyBlock(const GemmSpec& spec, double beta, const double* a, const double* b, double* c,
                   int64_t row, int64_t column) {
  const int64_t rows = std::min(kBlockRows, spec.m - row);
  const int64_t columns = std::min(kBlockColumns, spec.n - column);
  const int64_t a_row = spec.trans_a ? 1 : spec.lda;
  const int64_t a_depth = spec.trans_a ? spec.lda : 1;
  const int64_t b_depth = spec.trans_b ? 1 : spec.ldb;
  const int64_t b_column = spec.trans_b ? spec.ldb : 1;
  double packed_a[kBlockRows * kBlockDepth];
  double packed_b[kBlockColumns * kBlockDepth];
  double sum[kBlockRows * kBlockColumns] = {};
  for (int64_t p = 0; p < spec.k; p += kBlockDepth) {
    const int64_t depth = std::min(kBlockDepth, spec.k - p);
    Pack(a + row * a_row + p * a_depth, a_row, a_depth, rows, depth, kTileRows, packed_a);
    Pack(b + column * b_column + p * b_depth, b_column, b_depth, columns, depth, kTileColumns,
         packed_b);
    for (int64_t i = 0; i < rows; i += kTileRows) {
      for (int64_t j = 0; j < columns; j += kTileColumns) {
        MultiplyTile(packed_a + i * depth, packed_b + j * depth, depth,
                     sum + i * kBlockColumns + j);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    double* out = c + (row + i) * spec.ldc + column;
    for (int64_t j = 0; j < columns; ++j) {
      const double product = spec.alpha * sum[i * kBlockColumns + j];
      out[j] = beta == 0 ? product : product + beta * out[j];
    }
  }
}

// Computes all matrices C.
void MultiplyBlocks(const PlannedProduct& product, double beta, const double* a, const double* b,
                    double* c) {
  const GemmSpec& spec = product.spec;
  const int64_t row_blocks = (spec.m + kBlockRows - 1) / kBlockRows;
  const int64_t column_blocks = (spec.n + kBlockColumns - 1) / kBlockColumns;
  const int64_t blocks = row_blocks * column_blocks;
  // The work of a block, which decides how many blocks are worth a thread.
  const int64_t block_work =
      std::min(kBlockRows, spec.m) * std::min(kBlockColumns, spec.n) * spec.k;
  const int64_t grain = std::max<int64_t>(1, kGrainWork / block_work);
  ParallelFor(product.kept_count * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Offsets at = BatchOffsets(product.kept, i / blocks);
      const int64_t row = i % blocks / column_blocks * kBlockRows;
      const int64_t column = i % column_blocks * kBlockColumns;
      MultiplyBlock(spec, beta, a + at.a, b + at.b, c + at.c, row, column);
    }
  });
}

}  // namespace

GemmBatch::GemmBatch(std::initializer_list<GemmBatchDim> dims) {
  for (const GemmBatchDim& dim : dims) push_back(dim);
}

void GemmBatch::push_back(const GemmBatchDim& dim) {
  SKIFF_ENFORCE(rank_ < dims_.size(), kInvalidArgument, "gemm: a batch of more than ", rank_,
                " dims");
  dims_[rank_++] = dim;
}

GemmSpec SimplifyGemm(GemmSpec spec) {
  SKIFF_ENFORCE(spec.m >= 0 && spec.n >= 0 && spec.k >= 0, kInvalidArgument,
                "gemm: sizes m = ", spec.m, ", n = ", spec.n, ", k = ", spec.k,
                ", expected none to be negative");
  for (const GemmBatchDim& dim : spec.batch) {
    SKIFF_ENFORCE(dim.size >= 0, kInvalidArgument, "gemm: a batch of ", dim.size,
                  ", expected at least 0");
  }
  spec.lda = LeadingDim(spec.lda, ColumnsOfA(spec), "A");
  spec.ldb = LeadingDim(spec.ldb, ColumnsOfB(spec), "B");
  spec.ldc = LeadingDim(spec.ldc, spec.n, "C");
  MergeBatchDims(&spec.batch);
  while (FoldInnermost(&spec)) {
  }
  return spec;
}

bool IsOneProduct(const GemmSpec& spec) {
  const GemmSpec simple = SimplifyGemm(spec);
  return simple.batch.empty() && simple.m > 0 && simple.n > 0 && simple.k > 0;
}

template <typename T>
class Gemm<T>::Product {
 public:
  Product(const GemmSpec& spec, PrepareContext& context, int prepacked_b)
      : spec_(spec), prepared_(SimplifyGemm(spec)) {
    SKIFF_ENFORCE(prepacked_b < 0 || (std::is_same_v<T, float> && IsOneProduct(spec)),
                  kInvalidArgument,
                  "gemm: B can be prepacked for one product of float matrices only");
    if constexpr (std::is_same_v<T, float>) {
      // Where rows vary, a primitive for one number of rows would hardly run. Without it, the bits
      // of a product don't depend on whether its rows are those of the capacity.
      const bool runs_prepared = !context.rows_vary() || prepacked_b >= 0;
      if (runs_prepared && !prepared_.is_empty() && prepared_.has_terms()) {
        MakePrimitives(context, prepacked_b);
      }
    }
  }

  bool packs_b() const { return first_ && first_->packs_b(); }

  void Run(const KernelContext& context, const T* a, const T* b, T* c) {
    RunPlanned(context, prepared_, a, b, c);
  }

  void Run(const KernelContext& context, const GemmSpec& spec, const T* a, const T* b, T* c) {
    if (spec == spec_) return Run(context, a, b, c);
    RunPlanned(context, PlannedProduct(SimplifyGemm(spec)), a, b, c);
  }

 private:
  void MakePrimitives(PrepareContext& context, int prepacked_b) {
    first_.emplace(prepared_, prepared_.spec.beta, context, prepacked_b);
    if (prepared_.summed_count > 1) next_.emplace(prepared_, 1.0, context, -1);
  }

  void RunPlanned(const KernelContext& context, const PlannedProduct& product, const T* a,
                  const T* b, T* c) {
    if (product.is_empty()) return;
    if (!product.has_terms()) return ScaleMatrices(product, c);
    for (int64_t i = 0; i < product.summed_count; ++i) {
      // The summed dims run one after the other, in order: two threads must not add to one C.
      const Offsets at = BatchOffsets(product.summed, i);
      RunKept(context, product, a + at.a, b + at.b, c, i == 0);
    }
  }

  void RunKept(const KernelContext& context, const PlannedProduct& product, const T* a, const T* b,
               T* c, bool is_first) {
    const double beta = is_first ? product.spec.beta : 1.0;
    if constexpr (std::is_same_v<T, float>) {
      if (first_ && &product == &prepared_) {
        return (is_first ? *first_ : *next_).Run(context, a, b, c);
      }
      MultiplyUnprepared(product, beta, a, b, c);
    } else {
      MultiplyBlocks(product, beta, a, b, c);
    }
  }

  const GemmSpec spec_;
  const PlannedProduct prepared_;
  std::optional<MatmulPrimitive> first_;
  std::optional<MatmulPrimitive> next_;  // adds to C
};

template <typename T>
Gemm<T>::Gemm(const GemmSpec& spec, PrepareContext& context, int prepacked_b)
    : product_(std::make_unique<Product>(spec, context, prepacked_b)) {}
template <typename T>
Gemm<T>::~Gemm() = default;
template <typename T>
Gemm<T>::Gemm(Gemm&&) noexcept = default;
template <typename T>
Gemm<T>& Gemm<T>::operator=(Gemm&&) noexcept = default;

template <typename T>
void Gemm<T>::Run(const KernelContext& context, const T* a, const T* b, T* c) const {
  product_->Run(context, a, b, c);
}

template <typename T>
void Gemm<T>::Run(const KernelContext& context, const GemmSpec& spec, const T* a, const T* b,
                  T* c) const {
  product_->Run(context, spec, a, b, c);
}

template <typename T>
bool Gemm<T>::takes_other_sizes() const {
  return !product_->packs_b();
}

template class Gemm<float>;
template class Gemm<double>;

template <typename T>
std::unique_ptr<Kernel> PrepareProduct(PrepareContext& context, const ProductOfShapes& product_of,
                                       bool prepacks_y) {
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int out = context.OutputIndex("Out");
  Gemm<T> gemm(product_of(context.Input("X").shape, context.Input("Y").shape), context,
               prepacks_y ? y : -1);
  if (!gemm.takes_other_sizes()) {
    return MakeKernel([=, gemm = std::move(gemm)](const KernelContext& run) {
      gemm.Run(run, run.input(x).data<T>(), run.input(y).data<T>(), run.output(out).data<T>());
    });
  }
  return MakeRowsKernel([=, gemm = std::move(gemm)](const KernelContext& run) {
    const Tensor& left = run.input(x);
    const Tensor& right = run.input(y);
    gemm.Run(run, product_of(left.shape(), right.shape()), left.data<T>(), right.data<T>(),
             run.output(out).data<T>());
  });
}

template std::unique_ptr<Kernel> PrepareProduct<float>(PrepareContext&, const ProductOfShapes&,
                                                       bool);
template std::unique_ptr<Kernel> PrepareProduct<double>(PrepareContext&, const ProductOfShapes&,
                                                        bool);

KernelDef PrepackedProductKernel(std::function<ProductOfShapes(const OpContext&)> product_of) {
  const auto accepts = [product_of](const OpContext& context) {
    return AllPlain(context) &&
           IsOneProduct(product_of(context)(context.Input("X").shape, context.Input("Y").shape));
  };
  const auto prepare = [product_of](PrepareContext& context) {
    return PrepareProduct<float>(context, product_of(context), true);
  };
  return {.name = "prepacked",
          .place = PlaceKind::kCpu,
          .dtype = DType::kFloat32,
          .prepare = prepare,
          .accepts = accepts,
          // Packing pays if Y stays the same from step to step, which the context doesn't tell.
          .pays = [](const OpContext&) { return false; }};
}

}  // namespace skiff
