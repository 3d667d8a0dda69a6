#include <algorithm>
#include <optional>
#include <utility>

#include "operators/common/cpu/gemm_plan.h"
#include "operators/common/cuda/cuda_gemm.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_long_sum.cuh"
#include "operators/common/cuda/cuda_parts.cuh"
#include "operators/common/cuda/cuda_product.h"

namespace skiff {
namespace {

// Scratch memory, in bytes.
struct Scratch {
  int64_t product = 0;  // of a CudaProduct
  int64_t parts = 0;    // of a sum
};

constexpr Scratch kMaxScratch = {.product = kMaxCudaProductWorkspace, .parts = kMaxSumPartBytes};

CudaProductShape ShapeOf(const GemmSpec& spec) {
  return {.transpose_a = spec.trans_a,
          .transpose_b = spec.trans_b,
          .m = spec.m,
          .n = spec.n,
          .k = spec.k,
          .lda = spec.lda,
          .ldb = spec.ldb,
          .ldc = spec.ldc,
          .adds_bias = spec.adds_bias};
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

}  // namespace

// How products of one spec are computed.
template <typename T>
class CudaGemm<T>::Plan {
 public:
  // `limit`: of the scratch memory.
  Plan(const GemmSpec& spec, const Scratch& limit)
      : alpha_(static_cast<T>(spec.alpha)), beta_(static_cast<T>(spec.beta)) {
    PlannedGemm planned(SimplifyGemm(spec));
    if (planned.is_empty()) return;
    CudaProductShape shape = ShapeOf(planned.spec);
    if (!planned.has_terms()) {
      // A sum of nothing.
      shape.k = 0;
      planned.summed = {};
    }
    const int64_t part_bytes = shape.m * shape.n * static_cast<int64_t>(sizeof(T));
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
    if (!planned.kept.empty()) SetBatch(TakeLargestDim(&planned.kept), &shape);
    sequence_ = Sequence{planned.kept, planned.summed, CudaProduct<T>(shape, limit.product)};
    scratch_.product = sequence_->product.workspace_bytes();
  }

  const Scratch& scratch() const { return scratch_; }

  // The scratch memory may be nullptr where it isn't needed.
  void Run(cudaStream_t stream, const T* a, const T* b, T* c, const T* bias, void* of_product,
           void* of_parts) const {
    if (sequence_) RunSequence(stream, a, b, c, bias, of_product);
    if (parts_) RunParts(stream, a, b, c, of_product, static_cast<T*>(of_parts));
    if (long_sum_) {
      long_sum_->Run(stream, a, b, c, of_product, static_cast<T*>(of_parts), alpha_, beta_, bias);
    }
  }

 private:
  // Products that run one after the other; all but the first of a sum add to C.
  struct Sequence {
    GemmBatch kept;
    GemmBatch summed;
    CudaProduct<T> product;
  };
  // Products of which each writes a part of its own, `count` at a time.
  struct Parts {
    GemmBatchDim batch;
    int64_t elements = 0;  // of a part
    int64_t count = 0;
    CudaProduct<T> products;
    CudaProduct<T> last_products;
  };

  void PlanParts(const GemmBatchDim& dim, int64_t fitting, int64_t product_limit,
                 CudaProductShape shape) {
    const int64_t elements = shape.m * shape.n;
    const int64_t count = std::min(fitting, dim.size);
    SetBatch(dim, &shape);
    shape.stride_c = elements;
    shape.batches = count;
    const CudaProduct<T> products(shape, product_limit);
    shape.batches = dim.size % count;
    const CudaProduct<T> last_products(shape, product_limit);
    scratch_ = {std::max(products.workspace_bytes(), last_products.workspace_bytes()),
                count * elements * static_cast<int64_t>(sizeof(T))};
    parts_ = Parts{dim, elements, count, products, last_products};
  }

  void RunSequence(cudaStream_t stream, const T* a, const T* b, T* c, const T* bias,
                   void* of_product) const {
    const int64_t kept_count = BatchCount(sequence_->kept);
    const int64_t summed_count = BatchCount(sequence_->summed);
    for (int64_t i = 0; i < kept_count; ++i) {
      const GemmOffsets kept = BatchOffsets(sequence_->kept, i);
      for (int64_t j = 0; j < summed_count; ++j) {
        const GemmOffsets summed = BatchOffsets(sequence_->summed, j);
        sequence_->product.Run(stream, a + kept.a + summed.a, b + kept.b + summed.b, c + kept.c,
                               of_product, alpha_, j == 0 ? beta_ : T(1), bias);
      }
    }
  }

  void RunParts(cudaStream_t stream, const T* a, const T* b, T* c, void* of_product,
                T* parts) const {
    const GemmBatchDim& batch = parts_->batch;
    for (int64_t first = 0; first < batch.size; first += parts_->count) {
      const int64_t count = std::min(parts_->count, batch.size - first);
      const CudaProduct<T>& products =
          count == parts_->count ? parts_->products : parts_->last_products;
      products.Run(stream, a + first * batch.stride_a, b + first * batch.stride_b, parts,
                   of_product, alpha_);
      AddPartsOnDevice(stream, "sum of products of matrices", parts, count, parts_->elements,
                       first == 0 ? beta_ : T(1), c);
    }
  }

  T alpha_;
  T beta_;
  // One of them; none if C is empty.
  std::optional<Sequence> sequence_;
  std::optional<Parts> parts_;
  std::optional<CudaLongSum<T>> long_sum_;
  Scratch scratch_;
};

template <typename T>
CudaGemm<T>::CudaGemm(const GemmSpec& spec, PrepareContext& context) {
  auto plan = std::make_shared<const Plan>(spec, kMaxScratch);
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
    plans_.emplace_front(spec, std::make_shared<const Plan>(spec, limit));
    if (plans_.size() > kKept) plans_.pop_back();
  }
  return *plans_.front().second;
}

template class CudaGemm<float>;
template class CudaGemm<double>;

}  // namespace skiff
