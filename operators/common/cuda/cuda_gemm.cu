#include <algorithm>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "operators/common/cpu/gemm_plan.h"
#include "operators/common/cuda/cuda_gemm.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_long_sum.cuh"
#include "operators/common/cuda/cuda_parts.cuh"
#include "operators/common/cuda/cuda_product.h"
#include "operators/common/half.h"

namespace skiff {
namespace {

// Scratch memory, in bytes.
struct Scratch {
  int64_t product = 0;  // of a CudaProduct
  int64_t parts = 0;    // of a sum
};

constexpr Scratch kMaxScratch = {.product = kMaxCudaProductWorkspace, .parts = kMaxSumPartBytes};

CudaProductShape ShapeOf(const GemmSpec& spec, MathMode math) {
  return {.transpose_a = spec.trans_a,
          .transpose_b = spec.trans_b,
          .m = spec.m,
          .n = spec.n,
          .k = spec.k,
          .lda = spec.lda,
          .ldb = spec.ldb,
          .ldc = spec.ldc,
          .adds_bias = spec.adds_bias,
          .math = math};
}

void SetBatch(const GemmBatchDim& dim, CudaProductShape* shape) {
  shape->batches = dim.size;
  shape->stride_a = dim.stride_a;
  shape->stride_b = dim.stride_b;
  shape->stride_c = dim.stride_c;
}

// Takes the largest dim out of a batch that has any.
GemmBatchDim TakeLargestDim(GemmBatch* batch) {
  const auto* const largest = std::max_element(
      batch->begin(), batch->end(),
      [](const GemmBatchDim& a, const GemmBatchDim& b) { return a.size < b.size; });
  const GemmBatchDim taken = *largest;
  GemmBatch others;
  for (const GemmBatchDim& dim : *batch) {
    if (&dim != largest) others.push_back(dim);
  }
  *batch = others;
  return taken;
}

// Returns whether C has no gaps: as many elements as there are from its first to its last.
bool IsDense(const PlannedGemm& planned) {
  const GemmSpec& spec = planned.spec;
  int64_t span = (spec.m - 1) * spec.ldc + spec.n;
  for (const GemmBatchDim& dim : planned.kept) span += (dim.size - 1) * dim.stride_c;
  return span == planned.kept_count * spec.m * spec.n;
}

}  // namespace

// How products of one spec are computed.
template <typename T>
class CudaGemm<T>::Plan {
 public:
  // `limit`: of the scratch memory.
  Plan(const GemmSpec& spec, MathMode math, const Scratch& limit)
      : alpha_(static_cast<Wide>(spec.alpha)), beta_(static_cast<Wide>(spec.beta)) {
    PlannedGemm planned(SimplifyGemm(spec));
    if (planned.is_empty()) return;
    CudaProductShape shape = ShapeOf(planned.spec, math);
    if (!planned.has_terms()) {
      // A sum of nothing.
      shape.k = 0;
      planned.summed = {};
    }
    const int64_t part_bytes = shape.m * shape.n * kWideBytes;
    const int64_t fitting = limit.parts / part_bytes;
    if (planned.kept.empty() && planned.summed.dims().size() == 1 && shape.ldc == shape.n &&
        fitting > 1) {
      PlanParts(planned.summed.back(), fitting, limit.product, shape);
      return;
    }
    if (planned.kept.empty() && planned.summed.empty() && shape.ldc == shape.n) {
      const LongSumCut cut = CutOfLongSum(shape.m, shape.n, shape.k, fitting);
      if (cut.count > 1) {
        long_sum_.emplace(shape, cut, limit.product);
        scratch_ = {long_sum_->product_bytes(), long_sum_->part_bytes()};
        return;
      }
    }
    const bool adds_in_scratch = kIsHalf<T> && !planned.summed.empty();
    if (adds_in_scratch) PlanWideElements(planned);
    if (!planned.kept.empty()) SetBatch(TakeLargestDim(&planned.kept), &shape);
    if (adds_in_scratch) {
      wide_sums_.emplace(planned, CudaProduct<T, Wide>(shape, limit.product));
      scratch_ = {wide_sums_->product.workspace_bytes(), wide_elements_ * kWideBytes};
      return;
    }
    sequence_.emplace(planned, CudaProduct<T>(shape, limit.product));
    scratch_.product = sequence_->product.workspace_bytes();
  }

  const Scratch& scratch() const { return scratch_; }

  // The scratch memory may be nullptr where it isn't needed.
  void Run(cudaStream_t stream, const T* a, const T* b, T* c, const T* bias, void* of_product,
           void* of_parts) const {
    auto* const parts = static_cast<Wide*>(of_parts);
    if (sequence_) sequence_->Run(stream, a, b, c, of_product, alpha_, beta_, bias);
    if (wide_sums_) {
      wide_sums_->Run(stream, a, b, parts, of_product, alpha_, /*beta=*/0, /*bias=*/nullptr);
      AddPartsOnDevice(stream, kSumOfProducts, parts, 1, wide_elements_, beta_, c);
    }
    if (parts_) RunParts(stream, a, b, c, of_product, parts);
    if (long_sum_) long_sum_->Run(stream, a, b, c, of_product, parts, alpha_, beta_, bias);
  }

 private:
  using Wide = WideType<T>;

  static constexpr auto kWideBytes = static_cast<int64_t>(sizeof(Wide));
  static constexpr const char* kSumOfProducts = "sum of products of matrices";

  // Products that run one after the other; all but the first of a sum add to C.
  template <typename Result>
  struct Sequence {
    Sequence(const PlannedGemm& planned, const CudaProduct<T, Result>& product)
        : kept(planned.kept), summed(planned.summed), product(product) {}

    void Run(cudaStream_t stream, const T* a, const T* b, Result* c, void* of_product, Wide alpha,
             Wide beta, const Result* bias) const {
      const int64_t kept_count = BatchCount(kept);
      const int64_t summed_count = BatchCount(summed);
      for (int64_t i = 0; i < kept_count; ++i) {
        const GemmOffsets of_kept = BatchOffsets(kept, i);
        for (int64_t j = 0; j < summed_count; ++j) {
          const GemmOffsets of_summed = BatchOffsets(summed, j);
          product.Run(stream, a + of_kept.a + of_summed.a, b + of_kept.b + of_summed.b,
                      c + of_kept.c, of_product, alpha, j == 0 ? beta : Wide(1), bias);
        }
      }
    }

    GemmBatch kept;
    GemmBatch summed;
    CudaProduct<T, Result> product;
  };
  // Products of which each writes a part of its own, `count` at a time; those after the first
  // `count` add to the parts.
  struct Parts {
    GemmBatchDim batch;
    int64_t elements = 0;  // of a part
    int64_t count = 0;
    CudaProduct<T, Wide> products;
    CudaProduct<T, Wide> last_products;
  };

  void PlanParts(const GemmBatchDim& dim, int64_t fitting, int64_t product_limit,
                 CudaProductShape shape) {
    const int64_t elements = shape.m * shape.n;
    const int64_t count = std::min(fitting, dim.size);
    SetBatch(dim, &shape);
    shape.stride_c = elements;
    shape.batches = count;
    const CudaProduct<T, Wide> products(shape, product_limit);
    shape.batches = dim.size % count;
    const CudaProduct<T, Wide> last_products(shape, product_limit);
    scratch_ = {std::max(products.workspace_bytes(), last_products.workspace_bytes()),
                count * elements * kWideBytes};
    parts_ = Parts{dim, elements, count, products, last_products};
  }

  // C of half is added up in float32, in scratch memory, before it is rounded.
  void PlanWideElements(const PlannedGemm& planned) {
    SKIFF_ENFORCE(IsDense(planned), kUnimplemented, "gemm: sums of ", kDTypeOf<T>,
                  " over a batch into a C with gaps, expected none");
    wide_elements_ = planned.kept_count * planned.spec.m * planned.spec.n;
  }

  void RunParts(cudaStream_t stream, const T* a, const T* b, T* c, void* of_product,
                Wide* parts) const {
    const GemmBatchDim& batch = parts_->batch;
    for (int64_t first = 0; first < batch.size; first += parts_->count) {
      const bool is_whole = batch.size - first >= parts_->count;
      const CudaProduct<T, Wide>& products = is_whole ? parts_->products : parts_->last_products;
      products.Run(stream, a + first * batch.stride_a, b + first * batch.stride_b, parts,
                   of_product, alpha_, first == 0 ? Wide(0) : Wide(1));
    }
    AddPartsOnDevice(stream, kSumOfProducts, parts, parts_->count, parts_->elements, beta_, c);
  }

  Wide alpha_;
  Wide beta_;
  // One of them; none if C is empty.
  std::optional<Sequence<T>> sequence_;
  std::optional<Sequence<Wide>> wide_sums_;
  int64_t wide_elements_ = 0;
  std::optional<Parts> parts_;
  std::optional<CudaLongSum<T>> long_sum_;
  Scratch scratch_;
};

template <typename T>
CudaGemm<T>::CudaGemm(const GemmSpec& spec, PrepareContext& context) : math_(context.math()) {
  auto plan = std::make_shared<const Plan>(spec, math_, kMaxScratch);
  product_bytes_ = plan->scratch().product;
  part_bytes_ = plan->scratch().parts;
  if (product_bytes_ > 0) product_workspace_ = context.RequestWorkspace(product_bytes_);
  if (part_bytes_ > 0) part_workspace_ = context.RequestWorkspace(part_bytes_);
  plans_.emplace_front(spec, std::move(plan));
}

template <typename T>
void CudaGemm<T>::Run(const KernelContext& run, const GemmSpec& spec, const T* a, const T* b, T* c,
                      const T* bias) {
  PlanOf(spec).Run(StreamOf(run), a, b, c, bias,
                   product_workspace_ < 0 ? nullptr : run.workspace(product_workspace_),
                   part_workspace_ < 0 ? nullptr : run.workspace(part_workspace_));
}

template <typename T>
const typename CudaGemm<T>::Plan& CudaGemm<T>::PlanOf(const GemmSpec& spec) {
  // As many as the kernels for other rows that an executor keeps.
  constexpr size_t kKept = 64;
  const auto found = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const auto& plan) { return plan.first == spec; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
  } else {
    const Scratch limit = {.product = product_bytes_, .parts = part_bytes_};
    auto plan = std::make_shared<const Plan>(spec, math_, limit);
    SKIFF_ENFORCE(plan->scratch().parts <= part_bytes_, kFailedPrecondition,
                  "gemm: a product needs ", plan->scratch().parts, " bytes, expected at most the ",
                  part_bytes_, " of the prepared one, which is larger");
    plans_.emplace_front(spec, std::move(plan));
    if (plans_.size() > kKept) plans_.pop_back();
  }
  return *plans_.front().second;
}

template class CudaGemm<float>;
template class CudaGemm<double>;
template class CudaGemm<BFloat16>;
template class CudaGemm<Float16>;

}  // namespace skiff
