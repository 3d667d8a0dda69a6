#include "operators/math/kernels/matrix_product.h"

#include <array>
#include <optional>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/op/grad.h"
#include "framework/op/op_context.h"

namespace skiff {
namespace {

using BatchDims = std::array<int64_t, Shape::kMaxRank>;

// Returns, for each dim of the product's batch, the distance between a factor's matrices in
// elements, or 0 if the factor broadcasts along it. In a gradient, a stride of 0 of the result
// means a sum over the matrices (GemmBatchDim).
BatchDims BatchStrides(const Shape& batch, int64_t matrix, const Shape& out_batch) {
  BatchDims strides{};
  int64_t stride = matrix;
  for (int axis = out_batch.rank() - 1; axis >= 0; --axis) {
    // Batches are aligned at their last dims, as in broadcasting.
    const int64_t size = AlignedDim(batch, out_batch.rank(), axis);
    strides[static_cast<size_t>(axis)] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return strides;
}

struct Strides {
  explicit Strides(const MatrixProduct& product)
      : x(BatchStrides(product.x.batch, product.x.rows * product.x.columns, product.batch)),
        y(BatchStrides(product.y.batch, product.y.rows * product.y.columns, product.batch)),
        out(BatchStrides(product.batch, product.m * product.n, product.batch)) {}
  BatchDims x;
  BatchDims y;
  BatchDims out;
};

GemmSpec WithBatch(GemmSpec spec, const Shape& batch, const BatchDims& a, const BatchDims& b,
                   const BatchDims& c) {
  for (int axis = 0; axis < batch.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    spec.batch.push_back({batch[axis], a[i], b[i], c[i]});
  }
  return spec;
}

}  // namespace

int64_t AlignedDim(const Shape& batch, int rank, int axis) {
  const int own = axis - (rank - batch.rank());
  return own < 0 ? 1 : batch[own];
}

AttrDef RowDimsAttr(StaticText name, StaticText slot) {
  return {.name = name,
          .type = AttrType::kInt,
          .default_value = Attribute(int32_t{1}),
          .doc = StrCat("How many leading dims of ", slot, " make the rows of its matrix."),
          .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; },
          .expected = "at least 1"};
}

int64_t FlattenDims(const Shape& shape, int begin, int end) {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) {
    if (shape[i] < 0) return -1;
    product = MultiplyCounts(product, shape[i]);
  }
  return product;
}

bool HasRowsAlone(const OpContext& context) { return context.IntAttr("x_num_col_dims") == 1; }

void SetProductSizes(MatrixProduct* product) {
  product->m = product->x.height();
  product->n = product->y.width();
  product->k = product->x.width();
}

void SetProductSizes(const OpContext& context, MatrixProduct* product) {
  const auto describe = [&](const char* slot, const MatrixFactor& factor) {
    return StrCat(slot, " ", context.Input(slot).shape, factor.transposed ? " (transposed)" : "");
  };
  SetProductSizes(product);
  product->k = MergeDims(product->x.width(), product->y.height(),
                         StrCat(context.op().type, ": the dims that ", describe("X", product->x),
                                " and ", describe("Y", product->y), " are summed over"));
}

void CheckFactors(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const TensorMeta& y = context.Input("Y");
  const std::string& type = context.op().type;
  SKIFF_ENFORCE(x.dtype == y.dtype, kInvalidArgument, type, ": X is ", x.dtype, ", Y is ", y.dtype,
                ", expected one dtype");
  SKIFF_ENFORCE(x.shape.rank() >= 1 && y.shape.rank() >= 1, kInvalidArgument, type, ": X ", x.shape,
                " and Y ", y.shape, ", expected at least one dim each");
}

GemmSpec SpecOf(const MatrixProduct& p) {
  const Strides strides(p);
  return WithBatch({.m = p.m,
                    .n = p.n,
                    .k = p.k,
                    .trans_a = p.x.transposed,
                    .trans_b = p.y.transposed,
                    .alpha = p.alpha},
                   p.batch, strides.x, strides.y, strides.out);
}

// dX = dOut * op(Y)', or its transpose op(Y) * dOut' if X is stored transposed: the product then
// has the layout of X, and nothing need be transposed afterwards.
GemmSpec GradientOfX(const MatrixProduct& p) {
  const Strides strides(p);
  if (!p.x.transposed) {
    const GemmSpec spec{.m = p.m, .n = p.k, .k = p.n, .trans_b = !p.y.transposed, .alpha = p.alpha};
    return WithBatch(spec, p.batch, strides.out, strides.y, strides.x);
  }
  const GemmSpec spec{
      .m = p.k, .n = p.m, .k = p.n, .trans_a = p.y.transposed, .trans_b = true, .alpha = p.alpha};
  return WithBatch(spec, p.batch, strides.y, strides.out, strides.x);
}

// dY = op(X)' * dOut, or its transpose dOut' * op(X) if Y is stored transposed.
GemmSpec GradientOfY(const MatrixProduct& p) {
  const Strides strides(p);
  if (!p.y.transposed) {
    const GemmSpec spec{.m = p.k, .n = p.n, .k = p.m, .trans_a = !p.x.transposed, .alpha = p.alpha};
    return WithBatch(spec, p.batch, strides.x, strides.out, strides.y);
  }
  const GemmSpec spec{
      .m = p.n, .n = p.k, .k = p.m, .trans_a = true, .trans_b = p.x.transposed, .alpha = p.alpha};
  return WithBatch(spec, p.batch, strides.out, strides.x, strides.y);
}

template <typename T>
std::unique_ptr<Kernel> PrepareMatrixProductGrad(PrepareContext& context,
                                                 const MatrixProductOfShapes& product_of) {
  const MatrixProduct p = product_of(context.Input("X").shape, context.Input("Y").shape);
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  std::optional<Gemm<T>> to_x;
  std::optional<Gemm<T>> to_y;
  // A product that nobody reads isn't computed.
  if (dx.is_there()) to_x.emplace(GradientOfX(p), context);
  if (dy.is_there()) to_y.emplace(GradientOfY(p), context);
  const bool x_transposed = p.x.transposed;
  const bool y_transposed = p.y.transposed;
  return MakeRowsKernel(
      [=, to_x = std::move(to_x), to_y = std::move(to_y)](const KernelContext& run) {
        const MatrixProduct product = product_of(x.shape(run), y.shape(run));
        const T* gradient = dout(run);
        if (to_x) {
          to_x->Run(run, GradientOfX(product), x_transposed ? y(run) : gradient,
                    x_transposed ? gradient : y(run), dx(run));
        }
        if (to_y) {
          to_y->Run(run, GradientOfY(product), y_transposed ? gradient : x(run),
                    y_transposed ? x(run) : gradient, dy(run));
        }
      });
}

template std::unique_ptr<Kernel> PrepareMatrixProductGrad<float>(PrepareContext&,
                                                                 const MatrixProductOfShapes&);
template std::unique_ptr<Kernel> PrepareMatrixProductGrad<double>(PrepareContext&,
                                                                  const MatrixProductOfShapes&);
template std::unique_ptr<Kernel> PrepareMatrixProductGrad<BFloat16>(PrepareContext&,
                                                                    const MatrixProductOfShapes&);

KernelDef PrepackedMatrixProductKernel(
    std::function<MatrixProductOfShapes(const OpContext&)> product_of) {
  return PrepackedProductKernel(
      [product_of = std::move(product_of)](const OpContext& context) -> ProductOfShapes {
        return [of_shapes = product_of(context)](const Shape& x, const Shape& y) {
          return SpecOf(of_shapes(x, y));
        };
      });
}

double FlopOf(const MatrixProduct& product) {
  // A multiplication and an addition for each term of each sum.
  return 2.0 * static_cast<double>(product.batch.element_count()) * static_cast<double>(product.m) *
         static_cast<double>(product.k) * static_cast<double>(product.n);
}

void AddMatrixProduct(OpRegistry& registry, OpDef def,
                      MatrixProductOfShapes (*product_of)(const OpContext& context)) {
  def.flop = [product_of](const OpContext& context) {
    return FlopOf(product_of(context)(context.Input("X").shape, context.Input("Y").shape));
  };
  def.precision = Precision::kLow;
  OpDef grad = GradientOf(&def, {"X", "Y", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"});
  grad.doc = StrCat(
      "The gradient of ", def.type,
      ", Out = alpha * P * Q with P = op(X) and Q = op(Y): dP = alpha * dOut * Q', dQ = alpha "
      "* P' * dOut, summed over broadcast dims.");
  grad.flop = GradFlop(def.flop, {"X@GRAD", "Y@GRAD"});
  const StaticText type = def.type;
  const StaticText grad_type = grad.type;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  const auto prepare = [product_of]<typename T>(PrepareContext& context) {
    return PrepareMatrixProduct<T>(context, product_of(context));
  };
  const auto prepare_grad = [product_of]<typename T>(PrepareContext& context) {
    return PrepareMatrixProductGrad<T>(context, product_of(context));
  };
  registry.AddCpuKernels<float, double>(type, prepare);
  registry.AddNativeKernel<BFloat16>(type, prepare);
  registry.AddCpuKernels<float, double>(grad_type, prepare_grad);
  registry.AddNativeKernel<BFloat16>(grad_type, prepare_grad);
}

}  // namespace skiff
