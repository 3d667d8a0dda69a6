#include "operators/common/cpu/gemm_spec.h"

#include "framework/base/error.h"

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
  // oneDNN scales a bias with the product.
  SKIFF_ENFORCE(!spec.adds_bias || (spec.batch.empty() && spec.alpha == 1), kInvalidArgument,
                "gemm: a bias for ", spec.batch.empty() ? "one product" : "a batch of products",
                " with alpha = ", spec.alpha, ", expected one product with alpha = 1");
  return spec;
}

bool IsOneProduct(const GemmSpec& spec) {
  const GemmSpec simple = SimplifyGemm(spec);
  return simple.batch.empty() && simple.m > 0 && simple.n > 0 && simple.k > 0;
}

}  // namespace skiff
