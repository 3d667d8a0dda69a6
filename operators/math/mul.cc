// mul: Out = X * Y, the product of two matrices, where X and Y are tensors flattened to two
// dimensions: the first x_num_col_dims dims of X (y_num_col_dims of Y) are the rows, the others the
// columns. Out has the row dims of X and the column dims of Y.
// Source: Fluid's mul; gradients dX = dOut * Y', dY = X' * dOut.
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/gemm.h"
#include "operators/math/kernels/matrix_product.h"

namespace skiff {
namespace {

struct MulSizes {
  int x_rows = 1;  // dims
  int y_rows = 1;
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
};

MulSizes SizesOf(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const TensorMeta& y = context.Input("Y");
  const std::string& type = context.op().type;
  SKIFF_ENFORCE(x.dtype == y.dtype, kInvalidArgument, type, ": X is ", x.dtype, ", Y is ", y.dtype,
                ", expected one dtype");
  MulSizes sizes;
  // At least one dim stays for the rows and one for the columns.
  sizes.x_rows = static_cast<int>(context.IntAttr("x_num_col_dims"));
  sizes.y_rows = static_cast<int>(context.IntAttr("y_num_col_dims"));
  SKIFF_ENFORCE(sizes.x_rows >= 1 && sizes.x_rows < x.shape.rank(), kInvalidArgument, type,
                ": x_num_col_dims = ", sizes.x_rows, " is outside [1, rank) for X of shape ",
                x.shape);
  SKIFF_ENFORCE(sizes.y_rows >= 1 && sizes.y_rows < y.shape.rank(), kInvalidArgument, type,
                ": y_num_col_dims = ", sizes.y_rows, " is outside [1, rank) for Y of shape ",
                y.shape);
  sizes.m = FlattenDims(x.shape, 0, sizes.x_rows);
  sizes.k = MergeDims(FlattenDims(x.shape, sizes.x_rows, x.shape.rank()),
                      FlattenDims(y.shape, 0, sizes.y_rows),
                      StrCat(type, ": columns of X ", x.shape, " and rows of Y ", y.shape));
  sizes.n = FlattenDims(y.shape, sizes.y_rows, y.shape.rank());
  return sizes;
}

Shape OutShape(const OpContext& context, const MulSizes& sizes) {
  const Shape& x = context.Input("X").shape;
  const Shape& y = context.Input("Y").shape;
  Shape out;
  SKIFF_ENFORCE(sizes.x_rows + y.rank() - sizes.y_rows <= Shape::kMaxRank, kInvalidArgument,
                context.op().type, ": X ", x, " and Y ", y, " make more than ", Shape::kMaxRank,
                " dims");
  for (int i = 0; i < sizes.x_rows; ++i) out.Append(x[i]);
  for (int i = sizes.y_rows; i < y.rank(); ++i) out.Append(y[i]);
  return out;
}

void Infer(OpContext& context) {
  const Shape out = OutShape(context, SizesOf(context));
  // For its LoD level: Out has X's rows.
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", out, context.Input("X").dtype);
}

// The sizes of shapes that have passed SizesOf.
MulSizes SizesOfShapes(int x_rows, int y_rows, const Shape& x, const Shape& y) {
  return {.x_rows = x_rows,
          .y_rows = y_rows,
          .m = x.element_count(0, x_rows),
          .k = y.element_count(0, y_rows),
          .n = y.element_count(y_rows, y.rank())};
}

ProductOfShapes ProductOf(const OpContext& context) {
  const MulSizes sizes = SizesOf(context);
  return [x_rows = sizes.x_rows, y_rows = sizes.y_rows](const Shape& x, const Shape& y) {
    const MulSizes of_shapes = SizesOfShapes(x_rows, y_rows, x, y);
    return GemmSpec{.m = of_shapes.m, .n = of_shapes.n, .k = of_shapes.k};
  };
}

GemmSpec GradientOfX(const MulSizes& sizes) {
  return {.m = sizes.m, .n = sizes.k, .k = sizes.n, .trans_b = true};
}

GemmSpec GradientOfY(const MulSizes& sizes) {
  return {.m = sizes.k, .n = sizes.n, .k = sizes.m, .trans_a = true};
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const MulSizes sizes = SizesOf(context);
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const In<T> dout(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  std::optional<Gemm<T>> to_x;
  std::optional<Gemm<T>> to_y;
  // A product that nobody reads isn't computed.
  if (dx.is_there()) to_x.emplace(GradientOfX(sizes), context, /*prepacked_b=*/-1, y.index());
  if (dy.is_there()) to_y.emplace(GradientOfY(sizes), context);
  return MakeRowsKernel([=, x_rows = sizes.x_rows, y_rows = sizes.y_rows, to_x = std::move(to_x),
                         to_y = std::move(to_y)](const KernelContext& run) {
    const MulSizes of_run = SizesOfShapes(x_rows, y_rows, x.shape(run), y.shape(run));
    const T* gradient = dout(run);
    if (to_x) to_x->Run(run, GradientOfX(of_run), gradient, y(run), dx(run));
    if (to_y) to_y->Run(run, GradientOfY(of_run), x(run), gradient, dy(run));
  });
}

std::vector<AttrDef> Attributes() {
  return {RowDimsAttr("x_num_col_dims", "X"), RowDimsAttr("y_num_col_dims", "Y")};
}

double ProductFlop(const OpContext& context) {
  const MulSizes sizes = SizesOf(context);
  // A multiplication and an addition for each term of each sum. In float64, since the count may
  // exceed int64.
  return 2.0 * static_cast<double>(sizes.m) * static_cast<double>(sizes.n) *
         static_cast<double>(sizes.k);
}

}  // namespace

MatrixProductOfShapes MulProduct(const OpContext& context) {
  const MulSizes sizes = SizesOf(context);
  return [x_rows = sizes.x_rows, y_rows = sizes.y_rows](const Shape& x, const Shape& y) {
    const MulSizes of_shapes = SizesOfShapes(x_rows, y_rows, x, y);
    MatrixProduct product;
    product.x = {.rows = of_shapes.m, .columns = of_shapes.k};
    product.y = {.rows = of_shapes.k, .columns = of_shapes.n};
    SetProductSizes(&product);
    return product;
  };
}

void RegisterMul(OpRegistry& registry) {
  OpDef def = {.type = "mul",
               .doc =
                   "Out = X * Y, tensors taken as matrices: the first x_num_col_dims dims of X "
                   "(y_num_col_dims of Y) are rows, the others columns. Fluid's mul.",
               .inputs = {{.name = "X", .doc = "The left factor."},
                          {.name = "Y", .doc = "The right factor."}},
               .outputs = {{.name = "Out", .doc = "Row dims of X, then column dims of Y."}},
               .attrs = Attributes(),
               .infer = Infer,
               .flop = ProductFlop,
               .rows = RowRule{.inputs = {"X"}, .outputs = {"Out"}, .applies = HasRowsAlone}};
  def.precision = Precision::kLow;
  OpDef grad = GradientOf(&def, {"X", "Y", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"});
  grad.doc = "The gradient of mul: dX = dOut * Y', dY = X' * dOut.";
  grad.flop = GradFlop(ProductFlop, {"X@GRAD", "Y@GRAD"});
  grad.rows = RowRule{.inputs = {"X", "Out@GRAD"},
                      .outputs = {"X@GRAD"},
                      .sums = {"Y@GRAD"},
                      .applies = HasRowsAlone};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  const auto prepare = []<typename T>(PrepareContext& context) {
    return PrepareProduct<T>(context, ProductOf(context));
  };
  const auto prepare_grad = []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  };
  registry.AddCpuKernels<float, double>("mul", prepare);
  registry.AddNativeKernel<BFloat16>("mul", prepare);
  registry.AddKernel("mul", PrepackedProductKernel(ProductOf));
  registry.AddCpuKernels<float, double>("mul_grad", prepare_grad);
  registry.AddNativeKernel<BFloat16>("mul_grad", prepare_grad);
}

}  // namespace skiff
