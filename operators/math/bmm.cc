// bmm: Out[b] = X[b] * Y[b], a batch of matrix products.
// Source: Fluid's bmm; dX[b] = dOut[b] * Y[b]', dY[b] = X[b]' * dOut[b].
#include <utility>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {
namespace {

MatrixProduct ProductOf(const Shape& x, const Shape& y) {
  MatrixProduct product;
  product.batch = {x[0]};
  product.x = {.batch = product.batch, .rows = x[1], .columns = x[2]};
  product.y = {.batch = product.batch, .rows = y[1], .columns = y[2]};
  SetProductSizes(&product);
  return product;
}

MatrixProduct ProductOf(const OpContext& context) {
  CheckFactors(context);
  const Shape& x = context.Input("X").shape;
  const Shape& y = context.Input("Y").shape;
  SKIFF_ENFORCE(x.rank() == 3 && y.rank() == 3, kInvalidArgument, context.op().type, ": X ", x,
                " and Y ", y, ", expected rank 3 for both");
  MatrixProduct product = ProductOf(x, y);
  product.batch = {
      MergeDims(x[0], y[0], StrCat(context.op().type, ": the batches of X ", x, " and Y ", y))};
  // All of matmul's loops serve: bmm is a product with one batch dim and no transposition.
  SetProductSizes(context, &product);
  return product;
}

void Infer(OpContext& context) {
  const MatrixProduct product = ProductOf(context);
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", {product.batch[0], product.m, product.n}, context.Input("X").dtype);
}

}  // namespace

MatrixProductOfShapes BmmProduct(const OpContext&) {
  return [](const Shape& x, const Shape& y) { return ProductOf(x, y); };
}

void RegisterBmm(OpRegistry& registry) {
  OpDef def = {.type = "bmm",
               .doc = "Out[b] = X[b] * Y[b], the products of a batch of matrices. Fluid's bmm.",
               .inputs = {{.name = "X", .doc = "The left factors, [batch, m, k]."},
                          {.name = "Y", .doc = "The right factors, [batch, k, n]."}},
               .outputs = {{.name = "Out", .doc = "The products, [batch, m, n]."}},
               .infer = Infer};
  AddMatrixProduct(registry, std::move(def), BmmProduct);
}

}  // namespace skiff
