// As many columns of B as take 4 MiB are packed at a time, and multiplied with all rows of A. They
// stay in the third-level cache, and A is read from memory few times.
#include "operators/common/cpu/bf16_gemm.h"

#include <algorithm>

#include "framework/base/element_count.h"
#include "operators/common/cpu/bf16_product.h"

namespace skiff {
namespace {

constexpr int64_t kPackedBytes = 4 << 20;

// Returns how many columns of B, whole panels, take at most so many bytes; at least one panel.
int64_t ColumnsWithin(int64_t bytes, int64_t depth) {
  constexpr int64_t kWidth = Bf16Product::kPanelColumns;
  const int64_t panel = std::max<int64_t>(1, Bf16Product(depth, kWidth).bytes());
  return std::max<int64_t>(1, bytes / panel) * kWidth;
}

void Pack(const GemmSpec& spec, const Bf16Product& product, const BFloat16* b, void* packed) {
  product.Pack(b, spec.trans_b ? 1 : spec.ldb, spec.trans_b ? spec.ldb : 1, packed);
}

}  // namespace

Bf16Gemm::Bf16Gemm(const PlannedGemm& product, PrepareContext& context, int constant_b)
    : spec_(product.spec) {
  if (spec_.trans_a) {
    scratch_ = context.RequestWorkspace(Bf16Product(spec_.k, spec_.n).ScratchBytes(spec_.m));
  }
  if (product.summed_count > 1) {
    sums_ = context.RequestWorkspace(ByteCount(MultiplyCounts(spec_.m, spec_.n), DType::kFloat32));
  }
  if (constant_b >= 0 && IsOneProduct(spec_)) {
    const Bf16Product whole(spec_.k, spec_.n);
    all_packed_ = context.RequestDerivedForm(
        {.inputs = {constant_b},
         .bytes = whole.bytes(),
         .refresh = [=, spec = spec_](const KernelContext& run, void* packed) {
           Pack(spec, whole, run.input(constant_b).data<BFloat16>(), packed);
         }});
    return;
  }
  const int64_t columns = std::min(spec_.n, ColumnsWithin(kPackedBytes, spec_.k));
  packed_bytes_ = Bf16Product(spec_.k, columns).bytes();
  packed_ = context.RequestWorkspace(packed_bytes_);
}

bool Bf16Gemm::Takes(const PlannedGemm& product) const {
  const GemmSpec& spec = product.spec;
  if (spec.trans_a != spec_.trans_a || spec.trans_b != spec_.trans_b) return false;
  if (product.summed_count > 1 && sums_ < 0) return false;
  if (all_packed_ >= 0 && (spec.n != spec_.n || spec.k != spec_.k)) return false;
  return spec.m <= spec_.m && spec.n <= spec_.n && spec.k <= spec_.k;
}

template <typename C>
void Bf16Gemm::RunOne(const KernelContext& context, const GemmSpec& spec, const BFloat16* a,
                      const BFloat16* b, C* c, int64_t c_stride, float beta,
                      const BFloat16* bias) const {
  const Bf16Matrix left = {a, spec.lda, spec.trans_a};
  Bf16Result<C> result = {.c = c,
                          .stride = c_stride,
                          .alpha = static_cast<float>(spec.alpha),
                          .beta = beta,
                          .bias = bias};
  void* scratch = scratch_ < 0 ? nullptr : context.workspace(scratch_);
  if (all_packed_ >= 0) {
    return Bf16Product(spec.k, spec.n)
        .Multiply(left, spec.m, context.derived(all_packed_), scratch, result);
  }
  void* packed = context.workspace(packed_);
  const int64_t step = ColumnsWithin(packed_bytes_, spec.k);
  for (int64_t column = 0; column < spec.n; column += step) {
    const Bf16Product product(spec.k, std::min(step, spec.n - column));
    Pack(spec, product, b + column * (spec.trans_b ? spec.ldb : 1), packed);
    result.c = c + column;
    if (bias != nullptr) result.bias = bias + column;
    product.Multiply(left, spec.m, packed, scratch, result);
  }
}

void Bf16Gemm::Run(const KernelContext& context, const PlannedGemm& product, const BFloat16* a,
                   const BFloat16* b, BFloat16* c, const BFloat16* bias) const {
  const GemmSpec& spec = product.spec;
  const auto beta = static_cast<float>(spec.beta);
  for (int64_t i = 0; i < product.kept_count; ++i) {
    const GemmOffsets at = BatchOffsets(product.kept, i);
    BFloat16* to = c + at.c;
    if (product.summed_count == 1) {
      RunOne(context, spec, a + at.a, b + at.b, to, spec.ldc, beta, bias);
      continue;
    }
    auto* sums = static_cast<float*>(context.workspace(sums_));
    const HalfArrays arrays = HalfArraysOf(DType::kBFloat16);
    for (int64_t row = 0; spec.beta != 0 && row < spec.m; ++row) {
      float* wide = sums + row * spec.n;
      arrays.to_floats(&to[row * spec.ldc].bits, spec.n, wide);
      for (int64_t j = 0; j < spec.n; ++j) wide[j] *= beta;
    }
    for (int64_t j = 0; j < product.summed_count; ++j) {
      const GemmOffsets term = BatchOffsets(product.summed, j);
      const bool adds = j > 0 || spec.beta != 0;
      RunOne(context, spec, a + at.a + term.a, b + at.b + term.b, sums, spec.n, adds ? 1.0f : 0.0f,
             nullptr);
    }
    for (int64_t row = 0; row < spec.m; ++row) {
      arrays.from_floats(sums + row * spec.n, spec.n, &to[row * spec.ldc].bits);
    }
  }
}

}  // namespace skiff
