// linear: Out = X * Y + Bias, where X is a tensor flattened to a matrix as in mul, Y a matrix, and
// Bias a vector that is added to each row.
//
// The pass fuse_linear creates it. Fluid's fc has another name for each slot, and an activation.
// The result is that of a product followed by elementwise_add, up to the order in which a library
// adds.
#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/gemm.h"
#include "operators/common/input_checks.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {
namespace {

struct LinearSizes {
  int x_rows = 1;  // dims
  bool transposes_y = false;
  int64_t n = 0;
};

// Checks the shapes.
LinearSizes SizesOf(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const TensorMeta& y = context.Input("Y");
  CheckFactors(context);
  LinearSizes sizes{.x_rows = static_cast<int>(context.IntAttr("x_num_col_dims")),
                    .transposes_y = context.Attr<bool>("trans_y")};
  SKIFF_ENFORCE(sizes.x_rows < x.shape.rank(), kInvalidArgument,
                "linear: x_num_col_dims = ", sizes.x_rows, ", expected less than the rank of X ",
                x.shape);
  SKIFF_ENFORCE(y.shape.rank() == 2, kInvalidArgument, "linear: Y ", y.shape,
                ", expected a matrix");
  MergeDims(FlattenDims(x.shape, sizes.x_rows, x.shape.rank()), y.shape[sizes.transposes_y ? 1 : 0],
            StrCat("linear: columns of X ", x.shape, " and rows of Y ", y.shape,
                   sizes.transposes_y ? " (transposed)" : ""));
  sizes.n = y.shape[sizes.transposes_y ? 0 : 1];
  CheckInputLike(context, "Bias", {sizes.n}, x.dtype);
  return sizes;
}

void Infer(OpContext& context) {
  const LinearSizes sizes = SizesOf(context);
  const TensorMeta& x = context.Input("X");
  Shape out;
  for (int i = 0; i < sizes.x_rows; ++i) out.Append(x.shape[i]);
  out.Append(sizes.n);
  // For its LoD level: Out has X's rows.
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", out, x.dtype);
}

double Flop(const OpContext& context) {
  const GemmSpec product =
      LinearProduct(context)(context.Input("X").shape, context.Input("Y").shape);
  // Of the product alone, as for addmm.
  return 2.0 * static_cast<double>(product.m) * static_cast<double>(product.n) *
         static_cast<double>(product.k);
}

}  // namespace

ProductOfShapes LinearProduct(const OpContext& context) {
  const LinearSizes sizes = SizesOf(context);
  return
      [x_rows = sizes.x_rows, transposes_y = sizes.transposes_y](const Shape& x, const Shape& y) {
        return GemmSpec{.m = x.element_count(0, x_rows),
                        .n = y[transposes_y ? 0 : 1],
                        .k = y[transposes_y ? 1 : 0],
                        .trans_b = transposes_y,
                        .adds_bias = true};
      };
}

void RegisterLinear(OpRegistry& registry) {
  registry.Add(
      {.type = "linear",
       .doc =
           "Out = X * Y + Bias, X taken as a matrix: the first x_num_col_dims dims are rows, the "
           "others columns.",
       .inputs = {{.name = "X", .doc = "The left factor."},
                  {.name = "Y", .doc = "The right factor, [k, n]; [n, k] with trans_y."},
                  {.name = "Bias", .doc = "[n], added to each row."}},
       .outputs = {{.name = "Out", .doc = "Row dims of X, then n."}},
       .attrs = {RowDimsAttr("x_num_col_dims", "X"),
                 {.name = "trans_y",
                  .type = AttrType::kBool,
                  .default_value = Attribute(false),
                  .doc = "Whether Y is stored transposed."}},
       .infer = Infer,
       .no_gradient_reason = "the pass that makes it keeps the gradients of product and addition",
       .flop = Flop,
       .rows = RowRule{.inputs = {"X"}, .outputs = {"Out"}, .applies = HasRowsAlone},
       .precision = Precision::kLow});
  const auto prepare = []<typename T>(PrepareContext& context) {
    return PrepareProduct<T>(context, LinearProduct(context));
  };
  registry.AddCpuKernels<float, double>("linear", prepare);
  registry.AddNativeKernel<BFloat16>("linear", prepare);
  registry.AddKernel("linear", PrepackedProductKernel(LinearProduct));
}

}  // namespace skiff
