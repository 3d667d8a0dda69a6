// As many columns of B as take 4 MiB are packed at a time, and multiplied with all rows of A. They
// stay in the third-level cache, and A is read from memory few times.
//
// Threads share a large product. Of a batch of small ones, each thread takes some.
#include "operators/common/cpu/bf16_gemm.h"

#include <omp.h>

#include <algorithm>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/common/cpu/bf16_product.h"
#include "operators/common/half_arrays.h"

namespace skiff {
namespace {

constexpr int64_t kPackedBytes = 4 << 20;
// The multiply-adds of a product that is large.
constexpr double kLargeWork = 1 << 24;
// Of a workspace.
constexpr int64_t kAlignment = 64;

// Returns how many columns of B, whole panels, take at most so many bytes; at least one panel.
int64_t ColumnsWithin(int64_t bytes, int64_t depth) {
  constexpr int64_t kWidth = Bf16Product::kPanelColumns;
  const int64_t panel = std::max<int64_t>(1, Bf16Product(depth, kWidth).bytes());
  return std::max<int64_t>(1, bytes / panel) * kWidth;
}

void Pack(const GemmSpec& spec, const Bf16Product& product, const BFloat16* b, void* packed) {
  product.Pack(b, spec.trans_b ? 1 : spec.ldb, spec.trans_b ? spec.ldb : 1, packed);
}

template <typename T = void>
T* PartOf(const KernelContext& context, int workspace, int64_t offset) {
  if (workspace < 0) return nullptr;
  return reinterpret_cast<T*>(static_cast<char*>(context.workspace(workspace)) + offset);
}

}  // namespace

Bf16Gemm::Bf16Gemm(const PlannedGemm& product, PrepareContext& context, int constant_b)
    : spec_(product.spec) {
  const double work =
      static_cast<double>(spec_.m) * static_cast<double>(spec_.n) * static_cast<double>(spec_.k);
  if (work < kLargeWork) {
    slots_ = std::clamp<int64_t>(product.kept_count, 1, omp_get_max_threads());
  }
  const auto request = [&](int64_t bytes, int64_t* of_slot) {
    *of_slot = RoundUp(bytes, kAlignment);
    return context.RequestWorkspace(MultiplyCounts(slots_, *of_slot));
  };
  const Bf16Product whole(spec_.k, spec_.n);
  if (spec_.trans_a) left_ = request(whole.ScratchBytes(spec_.m), &left_bytes_);
  if (product.summed_count > 1) {
    sums_ = request(ByteCount(MultiplyCounts(spec_.m, spec_.n), DType::kFloat32), &sums_bytes_);
  }
  if (constant_b >= 0 && IsOneProduct(spec_)) {
    all_packed_ = context.RequestDerivedForm(
        {.inputs = {constant_b},
         .bytes = whole.bytes(),
         .refresh = [=, spec = spec_](const KernelContext& run, void* packed) {
           Pack(spec, whole, run.input(constant_b).data<BFloat16>(), packed);
         }});
    return;
  }
  const int64_t columns = std::min(spec_.n, ColumnsWithin(kPackedBytes, spec_.k));
  packed_ = request(Bf16Product(spec_.k, columns).bytes(), &packed_bytes_);
}

bool Bf16Gemm::Takes(const PlannedGemm& product) const {
  const GemmSpec& spec = product.spec;
  if (spec.trans_a != spec_.trans_a || spec.trans_b != spec_.trans_b) return false;
  if (product.summed_count > 1 && sums_ < 0) return false;
  if (all_packed_ >= 0 && (spec.n != spec_.n || spec.k != spec_.k)) return false;
  return spec.m <= spec_.m && spec.n <= spec_.n && spec.k <= spec_.k;
}

Bf16Gemm::Room Bf16Gemm::RoomOf(const KernelContext& context, int64_t slot) const {
  return {.all_packed = all_packed_ < 0 ? nullptr : context.derived(all_packed_),
          .packed = PartOf(context, packed_, slot * packed_bytes_),
          .left = PartOf(context, left_, slot * left_bytes_),
          .sums = PartOf<float>(context, sums_, slot * sums_bytes_)};
}

template <typename C>
void Bf16Gemm::RunTerm(const Room& room, const GemmSpec& spec, const BFloat16* a, const BFloat16* b,
                       C* c, int64_t c_stride, float beta, const BFloat16* bias) const {
  const Bf16Matrix left = {a, spec.lda, spec.trans_a};
  Bf16Result<C> result = {.c = c,
                          .stride = c_stride,
                          .alpha = static_cast<float>(spec.alpha),
                          .beta = beta,
                          .bias = bias};
  if (room.all_packed != nullptr) {
    return Bf16Product(spec.k, spec.n).Multiply(left, spec.m, room.all_packed, room.left, result);
  }
  const int64_t step = ColumnsWithin(packed_bytes_, spec.k);
  for (int64_t column = 0; column < spec.n; column += step) {
    const Bf16Product product(spec.k, std::min(step, spec.n - column));
    Pack(spec, product, b + column * (spec.trans_b ? spec.ldb : 1), room.packed);
    result.c = c + column;
    if (bias != nullptr) result.bias = bias + column;
    product.Multiply(left, spec.m, room.packed, room.left, result);
  }
}

void Bf16Gemm::RunOne(const Room& room, const PlannedGemm& product, const BFloat16* a,
                      const BFloat16* b, BFloat16* c, const BFloat16* bias) const {
  const GemmSpec& spec = product.spec;
  const auto beta = static_cast<float>(spec.beta);
  if (product.summed_count == 1) {
    return RunTerm(room, spec, a, b, c, spec.ldc, beta, bias);
  }
  const HalfArrays arrays = HalfArraysOf(DType::kBFloat16);
  for (int64_t row = 0; beta != 0 && row < spec.m; ++row) {
    float* sums = room.sums + row * spec.n;
    arrays.to_floats(&c[row * spec.ldc].bits, spec.n, sums);
    for (int64_t j = 0; j < spec.n; ++j) sums[j] *= beta;
  }
  for (int64_t i = 0; i < product.summed_count; ++i) {
    const GemmOffsets at = BatchOffsets(product.summed, i);
    const bool adds = i > 0 || beta != 0;
    RunTerm(room, spec, a + at.a, b + at.b, room.sums, spec.n, adds ? 1.0f : 0.0f, nullptr);
  }
  for (int64_t row = 0; row < spec.m; ++row) {
    arrays.from_floats(room.sums + row * spec.n, spec.n, &c[row * spec.ldc].bits);
  }
}

void Bf16Gemm::Run(const KernelContext& context, const PlannedGemm& product, const BFloat16* a,
                   const BFloat16* b, BFloat16* c, const BFloat16* bias) const {
  const auto run_slots = [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      const Room room = RoomOf(context, slot);
      const int64_t last = product.kept_count * (slot + 1) / slots_;
      for (int64_t i = product.kept_count * slot / slots_; i < last; ++i) {
        const GemmOffsets at = BatchOffsets(product.kept, i);
        RunOne(room, product, a + at.a, b + at.b, c + at.c, bias);
      }
    }
  };
  ParallelFor(slots_, 1, run_slots);
}

}  // namespace skiff
