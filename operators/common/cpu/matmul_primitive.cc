#include "operators/common/cpu/matmul_primitive.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "framework/base/error.h"

namespace skiff {
namespace {

// A stride of 0 becomes a dim of 1, which oneDNN broadcasts.
dnnl::memory::desc Describe(DType dtype, int64_t rows, int64_t columns, int64_t row_stride,
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
  return OnednnStrided(dims, strides, dtype);
}

dnnl::primitive_attr ScaleAndAdd(double alpha, double beta) {
  dnnl::post_ops post_ops;
  if (alpha != 1) AppendOnednnScale(static_cast<float>(alpha), &post_ops);
  if (beta != 0) post_ops.append_sum(static_cast<float>(beta));
  dnnl::primitive_attr attributes = OnednnAttributes();
  attributes.set_post_ops(post_ops);
  return attributes;
}

// Requests the derived form of B. Returns its index.
int Prepack(const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted, int input,
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

}  // namespace

struct MatmulPrimitive::Description {
  Description(const PlannedGemm& product, double beta, DType dtype, bool prepacks_b) {
    const GemmSpec& spec = product.spec;
    const std::span<const GemmBatchDim> kept = product.kept.dims();
    const int64_t a_row = spec.trans_a ? 1 : spec.lda;
    const int64_t a_column = spec.trans_a ? spec.lda : 1;
    const int64_t b_row = spec.trans_b ? 1 : spec.ldb;
    const int64_t b_column = spec.trans_b ? spec.ldb : 1;
    a = Describe(dtype, spec.m, spec.k, a_row, a_column, kept, &GemmBatchDim::stride_a);
    b = Describe(dtype, spec.k, spec.n, b_row, b_column, kept, &GemmBatchDim::stride_b);
    c = Describe(dtype, spec.m, spec.n, spec.ldc, 1, kept, &GemmBatchDim::stride_c);
    if (spec.adds_bias) bias = OnednnStrided({1, spec.n}, {spec.n, 1}, dtype);
    primitive = OnednnMatmul(a, prepacks_b ? OnednnAny({spec.k, spec.n}) : b, bias, c,
                             ScaleAndAdd(spec.alpha, beta));
  }

  dnnl::memory::desc a;
  dnnl::memory::desc b;
  dnnl::memory::desc c;
  dnnl::memory::desc bias;
  dnnl::matmul::primitive_desc primitive;
};

MatmulPrimitive::MatmulPrimitive(const PlannedGemm& product, double beta, PrepareContext& context,
                                 int prepacked_b)
    : MatmulPrimitive(Description(product, beta, DType::kFloat32, prepacked_b >= 0), context,
                      prepacked_b) {}

std::optional<MatmulPrimitive> MatmulPrimitive::OfBf16(const PlannedGemm& product,
                                                       PrepareContext& context) {
  try {
    const Description description(product, product.spec.beta, DType::kBFloat16, false);
    if (IsOnednnNativeBf16(description.primitive)) return MatmulPrimitive(description, context, -1);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnimplemented) throw;
  }
  return std::nullopt;
}

MatmulPrimitive::MatmulPrimitive(const Description& description, PrepareContext& context,
                                 int prepacked_b)
    : call_(dnnl::matmul(description.primitive)) {
  const auto wanted_b = description.primitive.weights_desc();
  if (prepacked_b >= 0 && wanted_b != description.b) {
    packed_b_ = Prepack(description.b, wanted_b, prepacked_b, context);
  }
  call_.AddArgument(DNNL_ARG_SRC, description.a);
  call_.AddArgument(DNNL_ARG_WEIGHTS, wanted_b);
  call_.AddArgument(DNNL_ARG_DST, description.c);
  if (!description.bias.is_zero()) call_.AddArgument(DNNL_ARG_BIAS, description.bias);
  const auto scratchpad = description.primitive.scratchpad_desc();
  if (OnednnBytes(scratchpad) == 0) return;
  call_.AddArgument(DNNL_ARG_SCRATCHPAD, scratchpad);
  workspace_ = context.RequestWorkspace(OnednnBytes(scratchpad));
}

void MatmulPrimitive::Run(const KernelContext& context, const void* a, const void* b, void* c,
                          const void* bias) {
  call_.SetData(DNNL_ARG_SRC, a);
  call_.SetData(DNNL_ARG_WEIGHTS, packed_b_ < 0 ? b : context.derived(packed_b_));
  call_.SetData(DNNL_ARG_DST, c);
  if (bias != nullptr) call_.SetData(DNNL_ARG_BIAS, bias);
  if (workspace_ >= 0) call_.SetData(DNNL_ARG_SCRATCHPAD, context.workspace(workspace_));
  call_.Run();
}

}  // namespace skiff
