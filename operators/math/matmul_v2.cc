// matmul_v2: Out = op(X) * op(Y) on the last two dims, where op transposes or not. The dims before
// are a batch and broadcast against each other. A vector X is a row, and a vector Y a column; their
// dim of 1 is left out of Out. A vector is never transposed. Source: PaddlePaddle's matmul_v2. With
// P = op(X), Q = op(Y): dP = dOut * Q', dQ = P' * dOut, summed over broadcast dims.
#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {
namespace {

MatrixFactor FactorOf(const Shape& shape, bool transposed, bool is_left) {
  MatrixFactor factor;
  if (shape.rank() == 1) {
    (is_left ? factor.columns : factor.rows) = shape[0];
    return factor;
  }
  factor.batch = Shape(shape.dims().first(static_cast<size_t>(shape.rank()) - 2));
  factor.rows = shape.dim(-2);
  factor.columns = shape.dim(-1);
  factor.transposed = transposed;
  return factor;
}

// Returns the batch of the product, whose factors' batches fit.
Shape BroadcastBatch(const Shape& x, const Shape& y) {
  const int rank = std::max(x.rank(), y.rank());
  Shape out;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t a = AlignedDim(x, rank, axis);
    const int64_t b = AlignedDim(y, rank, axis);
    // An unknown dim against one above 1 can only be 1 or equal.
    out.Append(a == 1 || (a < 0 && b > 1) ? b : a);
  }
  return out;
}

void CheckBatches(const OpContext& context, const Shape& x, const Shape& y) {
  const int rank = std::max(x.rank(), y.rank());
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t a = AlignedDim(x, rank, axis);
    const int64_t b = AlignedDim(y, rank, axis);
    SKIFF_ENFORCE(a == b || a == 1 || b == 1 || a < 0 || b < 0, kInvalidArgument, context.op().type,
                  ": batch dims of X ", context.Input("X").shape, " and Y ",
                  context.Input("Y").shape, " don't broadcast: ", a, " and ", b,
                  ", expected equal dims or a 1");
  }
}

MatrixProduct ProductOf(const OpContext& context) {
  CheckFactors(context);
  MatrixProduct product =
      MatmulV2Product(context)(context.Input("X").shape, context.Input("Y").shape);
  CheckBatches(context, product.x.batch, product.y.batch);
  SetProductSizes(context, &product);
  return product;
}

Shape OutputShape(const OpContext& context) {
  const MatrixProduct product = ProductOf(context);
  Shape out = product.batch;
  if (context.Input("X").shape.rank() > 1) out.Append(product.m);
  if (context.Input("Y").shape.rank() > 1) out.Append(product.n);
  return out;
}

void Infer(OpContext& context) {
  const Shape out = OutputShape(context);
  if (context.Input("X").shape.rank() > 1) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", out, context.Input("X").dtype);
}

std::vector<AttrDef> Attributes() {
  return {{.name = "trans_x",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "X's matrices are stored transposed."},
          {.name = "trans_y",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "Y's matrices are stored transposed."}};
}

}  // namespace

MatrixProductOfShapes MatmulV2Product(const OpContext& context) {
  return [trans_x = context.Attr<bool>("trans_x"), trans_y = context.Attr<bool>("trans_y")](
             const Shape& x, const Shape& y) {
    MatrixProduct product;
    product.x = FactorOf(x, trans_x, true);
    product.y = FactorOf(y, trans_y, false);
    product.batch = BroadcastBatch(product.x.batch, product.y.batch);
    SetProductSizes(&product);
    return product;
  };
}

void RegisterMatmulV2(OpRegistry& registry) {
  OpDef def = {
      .type = "matmul_v2",
      .doc =
          "Out = op(X) * op(Y) on the last two dims; the dims before broadcast. A vector X is a "
          "row, a vector Y a column. PaddlePaddle's matmul_v2.",
      .inputs = {{.name = "X", .doc = "The left factor, of rank 1 or more."},
                 {.name = "Y", .doc = "The right factor, of rank 1 or more."}},
      .outputs = {{.name = "Out", .doc = "The products; a scalar for two vectors."}},
      .attrs = Attributes(),
      .infer = Infer};
  AddMatrixProduct(registry, std::move(def), MatmulV2Product);
  registry.AddKernel("matmul_v2", PrepackedMatrixProductKernel(MatmulV2Product));
}

}  // namespace skiff
