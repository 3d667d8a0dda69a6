// Dims of a batch whose products are summed (stride 0 of C) are a loop, in which all but the first
// product add to C.
//
// oneDNN: a matmul runs over the dims with separate results.
//
// PackedGemm: one pair of matrices after the other is multiplied. A block of B, 256 x 512, is
// packed into a workspace, from where all rows of A are multiplied with it. Of bfloat16: see
// bf16_gemm.cc.
#include "operators/common/cpu/gemm.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/bf16_gemm.h"
#include "operators/common/cpu/gemm_plan.h"
#include "operators/common/cpu/packed_product.h"
#include "operators/common/libraries/onednn.h"

namespace skiff {
namespace {

// Sets C = beta * C, plus a bias if it isn't nullptr, rounded once: the result if a product has no
// terms. For beta = 0 this overwrites NaN, too.
template <typename T>
void ScaleMatrices(const PlannedGemm& product, T* c, const T* bias = nullptr) {
  const GemmSpec& spec = product.spec;
  for (int64_t i = 0; i < product.kept_count * spec.m; ++i) {
    T* row = c + BatchOffsets(product.kept, i / spec.m).c + i % spec.m * spec.ldc;
    for (int64_t j = 0; j < spec.n; ++j) {
      using Wide = WideType<T>;
      Wide value =
          spec.beta == 0 ? Wide{0} : static_cast<Wide>(spec.beta) * static_cast<Wide>(row[j]);
      if (bias != nullptr) value += static_cast<Wide>(bias[j]);
      row[j] = static_cast<T>(value);
    }
  }
}

// ---- oneDNN

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
  MatmulPrimitive(const PlannedGemm& product, double beta, PrepareContext& context,
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
    const auto bias =
        spec.adds_bias ? OnednnStrided({1, spec.n}, {spec.n, 1}) : dnnl::memory::desc();
    const auto description = OnednnMatmul(a, prepacked_b < 0 ? b : OnednnAny({spec.k, spec.n}),
                                          bias, c, ScaleAndAdd(spec.alpha, beta));
    const auto wanted_b = description.weights_desc();
    if (prepacked_b >= 0 && wanted_b != b) packed_b_ = Prepack(b, wanted_b, prepacked_b, context);
    call_ = OnednnCall(dnnl::matmul(description));
    call_.AddArgument(DNNL_ARG_SRC, a);
    call_.AddArgument(DNNL_ARG_WEIGHTS, wanted_b);
    call_.AddArgument(DNNL_ARG_DST, c);
    if (spec.adds_bias) call_.AddArgument(DNNL_ARG_BIAS, bias);
    const auto scratchpad = description.scratchpad_desc();
    if (OnednnBytes(scratchpad) == 0) return;
    call_.AddArgument(DNNL_ARG_SCRATCHPAD, scratchpad);
    workspace_ = context.RequestWorkspace(OnednnBytes(scratchpad));
  }

  void Run(const KernelContext& context, const float* a, const float* b, float* c,
           const float* bias) {
    call_.SetData(DNNL_ARG_SRC, a);
    call_.SetData(DNNL_ARG_WEIGHTS, packed_b_ < 0 ? b : context.derived(packed_b_));
    call_.SetData(DNNL_ARG_DST, c);
    if (bias != nullptr) call_.SetData(DNNL_ARG_BIAS, bias);
    if (workspace_ >= 0) call_.SetData(DNNL_ARG_SCRATCHPAD, context.workspace(workspace_));
    call_.Run();
  }

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

// Returns whether PackedGemm is the faster one. oneDNN 2.6 without AVX-512 reaches only 40 to
// 55 % of the peak for some transposed matrices whose rows are multiples of 2 KiB apart.
bool IsSlowInOnednn(const PlannedGemm& product) {
  const GemmSpec& spec = product.spec;
  return product.kept_count == 1 && spec.trans_a && (spec.m % 512 == 0 || spec.n % 512 == 0) &&
         !OnednnUsesAvx512();
}

// ---- PackedProduct

// Of a block of B.
constexpr int64_t kBlockColumns = 512;

// Calls visit(block, column, p, offset) for each block of B, in the order in which they are
// multiplied: its place in B, and where it is among the numbers of all that are packed.
template <typename T, typename Visit>
void ForEachBlock(const GemmSpec& spec, const Visit& visit) {
  constexpr int64_t kDepth = PackedProduct<T>::kDepth;
  int64_t offset = 0;
  for (int64_t column = 0; column < spec.n; column += kBlockColumns) {
    for (int64_t p = 0; p < spec.k; p += kDepth) {
      const PackedProduct<T> block(std::min(kDepth, spec.k - p),
                                   std::min(kBlockColumns, spec.n - column));
      visit(block, column, p, offset);
      offset += block.bytes() / static_cast<int64_t>(sizeof(T));
    }
  }
}

template <typename T>
void PackBlock(const GemmSpec& spec, const PackedProduct<T>& block, int64_t column, int64_t p,
               const T* b, T* packed) {
  const int64_t b_row = spec.trans_b ? 1 : spec.ldb;
  const int64_t b_column = spec.trans_b ? spec.ldb : 1;
  block.Pack(b + p * b_row + column * b_column, b_row, b_column, packed);
  if (spec.alpha == 1) return;
  for (size_t i = 0; i < static_cast<size_t>(block.bytes()) / sizeof(T); ++i) {
    packed[i] *= static_cast<T>(spec.alpha);
  }
}

// Returns the bytes of all blocks of B.
template <typename T>
int64_t PackedBytes(const GemmSpec& spec) {
  int64_t bytes = 0;
  ForEachBlock<T>(spec, [&](const PackedProduct<T>& block, int64_t, int64_t, int64_t) {
    bytes += block.bytes();
  });
  return bytes;
}

// Multiplies two matrices. C is overwritten or added to; then a bias, if it isn't nullptr, is
// added. B is `all_packed` or, if that is nullptr, `b`, which is packed block by block.
template <typename T>
void MultiplyBlocks(const GemmSpec& spec, bool adds, const T* a, const T* b, const T* all_packed,
                    T* c, const T* bias, T* packed) {
  ForEachBlock<T>(
      spec, [&](const PackedProduct<T>& block, int64_t column, int64_t p, int64_t offset) {
        if (all_packed == nullptr) PackBlock(spec, block, column, p, b, packed);
        const T* of_block = all_packed == nullptr ? packed : all_packed + offset;
        T* to = c + column;
        const bool is_last = p + PackedProduct<T>::kDepth >= spec.k;
        const T* added = bias == nullptr || !is_last ? nullptr : bias + column;
        if (spec.trans_a) {
          block.MultiplyTransposed({.first = a + p * spec.lda, .stride = spec.lda}, spec.m,
                                   of_block, adds || p > 0, to, spec.ldc, added);
        } else {
          block.Multiply({.first = a + p, .stride = spec.lda}, spec.m, of_block, adds || p > 0, to,
                         spec.ldc, added);
        }
      });
}

// Products of float32 or float64, in the loops of PackedProduct.
template <typename T>
class PackedGemm {
 public:
  // Requests scratch memory, or the derived form of a `constant_b` that isn't -1.
  PackedGemm(const PlannedGemm& product, PrepareContext& context, int constant_b)
      : n_(product.spec.n), k_(product.spec.k) {
    if (constant_b >= 0 && IsOneProduct(product.spec)) {
      all_packed_ = PackAll(product.spec, constant_b, context);
      return;
    }
    packed_columns_ = std::min(kBlockColumns, n_);
    packed_ = context.RequestWorkspace(
        PackedProduct<T>(PackedProduct<T>::kDepth, packed_columns_).bytes());
  }

  // Returns whether the product can run.
  bool Takes(const PlannedGemm& product) const {
    const GemmSpec& spec = product.spec;
    if (all_packed_ >= 0) return spec.n == n_ && spec.k == k_;
    return std::min(kBlockColumns, spec.n) <= packed_columns_;
  }

  void Run(const KernelContext& context, const PlannedGemm& product, const T* a, const T* b, T* c,
           const T* bias) const {
    const T* all_packed =
        all_packed_ < 0 ? nullptr : static_cast<const T*>(context.derived(all_packed_));
    T* packed = packed_ < 0 ? nullptr : static_cast<T*>(context.workspace(packed_));
    for (int64_t i = 0; i < product.summed_count; ++i) {
      const GemmOffsets term = BatchOffsets(product.summed, i);
      const double beta = i == 0 ? product.spec.beta : 1.0;
      if (beta != 0 && beta != 1) ScaleMatrices(product, c);
      for (int64_t j = 0; j < product.kept_count; ++j) {
        const GemmOffsets at = BatchOffsets(product.kept, j);
        MultiplyBlocks<T>(product.spec, beta != 0, a + term.a + at.a, b + term.b + at.b, all_packed,
                          c + at.c, bias, packed);
      }
    }
  }

 private:
  // Requests the derived form of all blocks of B, one matrix. Returns its index.
  static int PackAll(const GemmSpec& spec, int input, PrepareContext& context) {
    return context.RequestDerivedForm(
        {.inputs = {input},
         .bytes = PackedBytes<T>(spec),
         .refresh = [spec, input](const KernelContext& run, void* packed) {
           const T* b = run.input(input).data<T>();
           ForEachBlock<T>(
               spec, [&](const PackedProduct<T>& block, int64_t column, int64_t p, int64_t offset) {
                 PackBlock(spec, block, column, p, b, static_cast<T*>(packed) + offset);
               });
         }});
  }

  int64_t n_;
  int64_t k_;
  int all_packed_ = -1;  // the derived form of B, or -1:
  // The workspace for a block of B, and the columns that it has room for.
  int packed_ = -1;
  int64_t packed_columns_ = 0;
};

template <>
class PackedGemm<BFloat16> : public Bf16Gemm {
 public:
  using Bf16Gemm::Bf16Gemm;
};

}  // namespace

namespace {

std::string Describe(const GemmSpec& spec) {
  return StrCat("m = ", spec.m, ", n = ", spec.n, ", k = ", spec.k,
                spec.trans_a ? ", A transposed" : "", spec.trans_b ? ", B transposed" : "", ", ",
                BatchCount(spec.batch), " products");
}

}  // namespace

template <typename T>
class Gemm<T>::Product {
 public:
  Product(const GemmSpec& spec, PrepareContext& context, int prepacked_b, int constant_b)
      : spec_(spec), prepared_(SimplifyGemm(spec)) {
    SKIFF_ENFORCE(prepacked_b < 0 || (std::is_same_v<T, float> && IsOneProduct(spec)),
                  kInvalidArgument,
                  "gemm: B can be prepacked for one product of float matrices only");
    if constexpr (std::is_same_v<T, float>) {
      // Where rows vary, a primitive for one number of rows would hardly run.
      if (prepacked_b >= 0 || !(context.rows_vary() || IsSlowInOnednn(prepared_))) {
        if (prepared_.is_empty() || !prepared_.has_terms()) return;
        first_.emplace(prepared_, prepared_.spec.beta, context, prepacked_b);
        if (prepared_.summed_count > 1) next_.emplace(prepared_, 1.0, context, -1);
        return;
      }
    }
    const bool is_constant = constant_b >= 0 && context.IsConstant(constant_b);
    packed_.emplace(prepared_, context, is_constant ? constant_b : -1);
  }

  bool takes_other_sizes() const { return packed_.has_value(); }

  void Run(const KernelContext& context, const T* a, const T* b, T* c, const T* bias) {
    RunPlanned(context, prepared_, a, b, c, bias);
  }

  void Run(const KernelContext& context, const GemmSpec& spec, const T* a, const T* b, T* c,
           const T* bias) {
    if (spec == spec_) return Run(context, a, b, c, bias);
    const PlannedGemm product(SimplifyGemm(spec));
    SKIFF_ENFORCE(
        product.is_empty() || !product.has_terms() || (packed_ && packed_->Takes(product)),
        kFailedPrecondition, "gemm: prepared for ", Describe(spec_),
        packed_ ? "" : " and no other sizes", ", runs with ", Describe(spec));
    RunPlanned(context, product, a, b, c, bias);
  }

 private:
  void RunPlanned(const KernelContext& context, const PlannedGemm& product, const T* a, const T* b,
                  T* c, const T* bias) {
    if (product.is_empty()) return;
    SKIFF_ENFORCE(product.spec.adds_bias == (bias != nullptr), kFailedPrecondition,
                  "gemm: prepared ", product.spec.adds_bias ? "with" : "without", " a bias, runs ",
                  bias != nullptr ? "with" : "without", " one");
    if (!product.has_terms()) return ScaleMatrices(product, c, bias);
    if (packed_) return packed_->Run(context, product, a, b, c, bias);
    if constexpr (std::is_same_v<T, float>) {
      // The summed dims run one after the other, in order: two threads must not add to one C.
      for (int64_t i = 0; i < product.summed_count; ++i) {
        const GemmOffsets at = BatchOffsets(product.summed, i);
        (i == 0 ? *first_ : *next_).Run(context, a + at.a, b + at.b, c, bias);
      }
    }
  }

  const GemmSpec spec_;
  const PlannedGemm prepared_;
  // oneDNN's.
  std::optional<MatmulPrimitive> first_;
  std::optional<MatmulPrimitive> next_;  // adds to C
  // Of other sizes, too.
  std::optional<PackedGemm<T>> packed_;
};

template <typename T>
Gemm<T>::Gemm(const GemmSpec& spec, PrepareContext& context, int prepacked_b, int constant_b)
    : product_(std::make_unique<Product>(spec, context, prepacked_b, constant_b)) {}
template <typename T>
Gemm<T>::~Gemm() = default;
template <typename T>
Gemm<T>::Gemm(Gemm&&) noexcept = default;
template <typename T>
Gemm<T>& Gemm<T>::operator=(Gemm&&) noexcept = default;

template <typename T>
void Gemm<T>::Run(const KernelContext& context, const T* a, const T* b, T* c, const T* bias) const {
  product_->Run(context, a, b, c, bias);
}

template <typename T>
void Gemm<T>::Run(const KernelContext& context, const GemmSpec& spec, const T* a, const T* b, T* c,
                  const T* bias) const {
  product_->Run(context, spec, a, b, c, bias);
}

template <typename T>
bool Gemm<T>::takes_other_sizes() const {
  return product_->takes_other_sizes();
}

template class Gemm<float>;
template class Gemm<double>;
template class Gemm<BFloat16>;

template <typename T>
std::unique_ptr<Kernel> PrepareProduct(PrepareContext& context, const ProductOfShapes& product_of,
                                       bool prepacks_y) {
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const Out<T> out(context, "Out");
  const GemmSpec prepared = product_of(context.Input("X").shape, context.Input("Y").shape);
  const In<T> bias = prepared.adds_bias ? In<T>(context, "Bias") : In<T>();
  Gemm<T> gemm(prepared, context, prepacks_y ? y.index() : -1, y.index());
  if (!gemm.takes_other_sizes()) {
    return MakeKernel([=, gemm = std::move(gemm)](const KernelContext& run) {
      gemm.Run(run, x(run), y(run), out(run), bias(run));
    });
  }
  return MakeRowsKernel([=, gemm = std::move(gemm)](const KernelContext& run) {
    gemm.Run(run, product_of(x.shape(run), y.shape(run)), x(run), y(run), out(run), bias(run));
  });
}

template std::unique_ptr<Kernel> PrepareProduct<float>(PrepareContext&, const ProductOfShapes&,
                                                       bool);
template std::unique_ptr<Kernel> PrepareProduct<double>(PrepareContext&, const ProductOfShapes&,
                                                        bool);
template std::unique_ptr<Kernel> PrepareProduct<BFloat16>(PrepareContext&, const ProductOfShapes&,
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
          .is_worthwhile = [](const OpContext&) { return false; }};
}

}  // namespace skiff
