// matmul: Out = alpha * op(X) * op(Y) on the last two dims, where op transposes or not. The dims
// before count as one batch, which both factors or one of them have. A vector X is a row, and a
// vector Y a column; unlike in matmul_v2, transposing turns one into the other. The dim of 1 that a
// vector adds is left out of Out. Source: Fluid's matmul; the gradient is that of
// kernels/matrix_product.h.
#include <utility>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {
namespace {

MatrixFactor FactorOf(const Shape& shape, bool transposed, bool is_left) {
  MatrixFactor factor;
  factor.transposed = transposed;
  if (shape.rank() == 1) {
    (is_left ? factor.columns : factor.rows) = shape[0];
    return factor;
  }
  factor.rows = shape.dim(-2);
  factor.columns = shape.dim(-1);
  if (shape.rank() == 2) return factor;
  const Shape batch(shape.dims().first(static_cast<size_t>(shape.rank()) - 2));
  factor.batch = {batch.is_known() ? batch.element_count() : int64_t{-1}};
  return factor;
}

MatrixProduct ProductOf(const OpContext& context) {
  CheckFactors(context);
  MatrixProduct product =
      MatmulProduct(context)(context.Input("X").shape, context.Input("Y").shape);
  const Shape& x_batch = product.x.batch;
  const Shape& y_batch = product.y.batch;
  if (x_batch.rank() > 0 && y_batch.rank() > 0) {
    product.batch[0] =
        MergeDims(x_batch[0], y_batch[0],
                  StrCat(context.op().type, ": the batches of X ", context.Input("X").shape,
                         " and Y ", context.Input("Y").shape));
  }
  SetProductSizes(context, &product);
  return product;
}

// Returns the batch dims of the factor that has any, followed by the dims of the product.
Shape OutputShape(const OpContext& context) {
  const MatrixProduct product = ProductOf(context);
  const Shape& x = context.Input("X").shape;
  const Shape& y = context.Input("Y").shape;
  const Shape& source = x.rank() > 2 ? x : y;
  Shape out;
  for (int axis = 0; axis < source.rank() - 2; ++axis) out.Append(source[axis]);
  const bool drops_row = x.rank() == 1 && product.m == 1;
  const bool drops_column = y.rank() == 1 && product.n == 1;
  if (!drops_row) out.Append(product.m);
  if (!drops_column) out.Append(product.n);
  return out;
}

void Infer(OpContext& context) {
  const Shape out = OutputShape(context);
  if (context.Input("X").shape.rank() > 1) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", out, context.Input("X").dtype);
}

std::vector<AttrDef> Attributes() {
  return {{.name = "transpose_X",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "X's matrices are stored transposed; a vector X is a column."},
          {.name = "transpose_Y",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "Y's matrices are stored transposed; a vector Y is a row."},
          {.name = "alpha",
           .type = AttrType::kFloat,
           .default_value = Attribute(1.0f),
           .doc = "A factor of the product."},
          {.name = "head_number",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{1}),
           .doc = "1; Fluid's products of parts of X's columns are not provided.",
           .accepts = [](const Attribute& value) { return std::get<int32_t>(value) == 1; },
           .expected = "1",
           .refusal = ErrorCode::kUnimplemented}};
}

}  // namespace

MatrixProductOfShapes MatmulProduct(const OpContext& context) {
  return [trans_x = context.Attr<bool>("transpose_X"), trans_y = context.Attr<bool>("transpose_Y"),
          alpha = context.Attr<float>("alpha")](const Shape& x, const Shape& y) {
    MatrixProduct product;
    product.x = FactorOf(x, trans_x, true);
    product.y = FactorOf(y, trans_y, false);
    product.alpha = static_cast<double>(alpha);
    product.batch = product.x.batch.rank() > 0 ? product.x.batch : product.y.batch;
    SetProductSizes(&product);
    return product;
  };
}

void RegisterMatmul(OpRegistry& registry) {
  OpDef def = {.type = "matmul",
               .doc =
                   "Out = alpha * op(X) * op(Y) on the last two dims; the dims before are one "
                   "batch. Fluid's matmul.",
               .inputs = {{.name = "X", .doc = "The left factor, of rank 1 or more."},
                          {.name = "Y", .doc = "The right factor, of rank 1 or more."}},
               .outputs = {{.name = "Out", .doc = "The products; a scalar for two vectors."}},
               .attrs = Attributes(),
               .infer = Infer};
  AddMatrixProduct(registry, std::move(def), MatmulProduct);
  registry.AddKernel("matmul", PrepackedMatrixProductKernel(MatmulProduct));
}

}  // namespace skiff
