// matmul_v2: Out = op(X) * op(Y) on the last two dims, op transposing or not; the dims before are a
// batch and broadcast against each other. A vector X is a row, a vector Y a column, and their dim
// of 1 is left out of Out; a vector is never transposed.
// Source: PaddlePaddle's matmul_v2. With P = op(X), Q = op(Y): dP = dOut * Q', dQ = P' * dOut,
// summed over broadcast dims.
#include <algorithm>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/gemm.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

// A factor as a batch of matrices.
struct Factor {
  Shape batch;
  int64_t rows = 1;  // as it lies, not transposed
  int64_t columns = 1;
  bool is_vector = false;
  bool transposed = false;
};

struct Product {
  Factor x;
  Factor y;
  Shape batch;  // of Out
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
};

Factor FactorOf(const Shape& shape, bool transposed, bool is_left) {
  Factor factor;
  if (shape.rank() == 1) {
    factor.is_vector = true;
    (is_left ? factor.columns : factor.rows) = shape[0];
    return factor;
  }
  factor.batch = Shape(shape.dims().first(static_cast<size_t>(shape.rank()) - 2));
  factor.rows = shape.dim(-2);
  factor.columns = shape.dim(-1);
  factor.transposed = transposed;
  return factor;
}

// Dim `axis` of a batch that is aligned at the back with one of `rank` dims.
int64_t AlignedDim(const Shape& batch, int rank, int axis) {
  const int own = axis - (rank - batch.rank());
  return own < 0 ? 1 : batch[own];
}

Shape BroadcastBatch(const OpContext& context, const Shape& x, const Shape& y) {
  const int rank = std::max(x.rank(), y.rank());
  Shape out;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t a = AlignedDim(x, rank, axis);
    const int64_t b = AlignedDim(y, rank, axis);
    SKIFF_ENFORCE(a == b || a == 1 || b == 1 || a < 0 || b < 0, kInvalidArgument, context.op().type,
                  ": batch dims of X ", context.Input("X").shape, " and Y ",
                  context.Input("Y").shape, " don't broadcast: ", a, " and ", b,
                  ", expected equal dims or a 1");
    // An unknown dim against one above 1 can only be 1 or equal.
    out.Append(a == 1 || (a < 0 && b > 1) ? b : a);
  }
  return out;
}

Product ProductOf(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const TensorMeta& y = context.Input("Y");
  const std::string& type = context.op().type;
  SKIFF_ENFORCE(x.dtype == y.dtype, kInvalidArgument, type, ": X is ", x.dtype, ", Y is ", y.dtype,
                ", expected one dtype");
  SKIFF_ENFORCE(x.shape.rank() >= 1 && y.shape.rank() >= 1, kInvalidArgument, type, ": X ", x.shape,
                " and Y ", y.shape, ", expected at least one dim each");
  Product product;
  product.x = FactorOf(x.shape, context.Attr<bool>("trans_x"), true);
  product.y = FactorOf(y.shape, context.Attr<bool>("trans_y"), false);
  const Factor& left = product.x;
  const Factor& right = product.y;
  product.batch = BroadcastBatch(context, left.batch, right.batch);
  product.m = left.transposed ? left.columns : left.rows;
  product.n = right.transposed ? right.rows : right.columns;
  product.k = MergeDims(
      left.transposed ? left.rows : left.columns, right.transposed ? right.columns : right.rows,
      StrCat(type, ": the dims that X ", x.shape, left.transposed ? " (transposed)" : "", " and Y ",
             y.shape, right.transposed ? " (transposed)" : "", " are summed over"));
  return product;
}

// Of the dims of the product's batch: elements between a factor's matrices, 0 where it broadcasts.
std::vector<int64_t> BatchStrides(const Shape& batch, int64_t matrix, const Shape& out_batch) {
  std::vector<int64_t> strides(static_cast<size_t>(out_batch.rank()));
  int64_t stride = matrix;
  for (int axis = out_batch.rank() - 1; axis >= 0; --axis) {
    const int64_t size = AlignedDim(batch, out_batch.rank(), axis);
    strides[static_cast<size_t>(axis)] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return strides;
}

struct Strides {
  explicit Strides(const Product& product)
      : x(BatchStrides(product.x.batch, product.x.rows * product.x.columns, product.batch)),
        y(BatchStrides(product.y.batch, product.y.rows * product.y.columns, product.batch)),
        out(BatchStrides(product.batch, product.m * product.n, product.batch)) {}
  std::vector<int64_t> x;
  std::vector<int64_t> y;
  std::vector<int64_t> out;
};

GemmSpec WithBatch(GemmSpec spec, const Shape& batch, const std::vector<int64_t>& a,
                   const std::vector<int64_t>& b, const std::vector<int64_t>& c) {
  for (int axis = 0; axis < batch.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    spec.batch.push_back({batch[axis], a[i], b[i], c[i]});
  }
  return spec;
}

Shape OutShape(const Product& product) {
  Shape out = product.batch;
  if (!product.x.is_vector) out.Append(product.m);
  if (!product.y.is_vector) out.Append(product.n);
  return out;
}

void Infer(OpContext& context) {
  const Product product = ProductOf(context);
  if (!product.x.is_vector) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", OutShape(product), context.Input("X").dtype);
}

void InferGrad(OpContext& context) {
  CheckInputLike(context, "Out@GRAD", OutShape(ProductOf(context)), context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
  context.SetOutputLike("Y@GRAD", "Y");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Product p = ProductOf(context);
  const Strides strides(p);
  Gemm<T> gemm(
      WithBatch(
          {.m = p.m, .n = p.n, .k = p.k, .trans_a = p.x.transposed, .trans_b = p.y.transposed},
          p.batch, strides.x, strides.y, strides.out),
      context);
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int out = context.OutputIndex("Out");
  return MakeKernel([=, gemm = std::move(gemm)](const KernelContext& run) {
    gemm.Run(run, run.input(x).data<T>(), run.input(y).data<T>(), run.output(out).data<T>());
  });
}

// dX = dOut * op(Y)', or its transpose op(Y) * dOut' where X lies transposed.
template <typename T>
Gemm<T> GradientOfX(const Product& p, PrepareContext& context) {
  const Strides strides(p);
  if (!p.x.transposed) {
    const GemmSpec spec{.m = p.m, .n = p.k, .k = p.n, .trans_b = !p.y.transposed};
    return Gemm<T>(WithBatch(spec, p.batch, strides.out, strides.y, strides.x), context);
  }
  const GemmSpec spec{.m = p.k, .n = p.m, .k = p.n, .trans_a = p.y.transposed, .trans_b = true};
  return Gemm<T>(WithBatch(spec, p.batch, strides.y, strides.out, strides.x), context);
}

// dY = op(X)' * dOut, or its transpose dOut' * op(X) where Y lies transposed.
template <typename T>
Gemm<T> GradientOfY(const Product& p, PrepareContext& context) {
  const Strides strides(p);
  if (!p.y.transposed) {
    const GemmSpec spec{.m = p.k, .n = p.n, .k = p.m, .trans_a = !p.x.transposed};
    return Gemm<T>(WithBatch(spec, p.batch, strides.x, strides.out, strides.y), context);
  }
  const GemmSpec spec{.m = p.n, .n = p.k, .k = p.m, .trans_a = true, .trans_b = p.x.transposed};
  return Gemm<T>(WithBatch(spec, p.batch, strides.out, strides.x, strides.y), context);
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const Product p = ProductOf(context);
  const int x = context.InputIndex("X");
  const int y = context.InputIndex("Y");
  const int dout = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  const int dy = context.OutputIndex("Y@GRAD");
  std::optional<Gemm<T>> to_x;
  std::optional<Gemm<T>> to_y;
  if (dx >= 0) to_x = GradientOfX<T>(p, context);
  if (dy >= 0) to_y = GradientOfY<T>(p, context);
  const bool x_transposed = p.x.transposed;
  const bool y_transposed = p.y.transposed;
  return MakeKernel([=, to_x = std::move(to_x), to_y = std::move(to_y)](const KernelContext& run) {
    const T* gradient = run.input(dout).data<T>();
    if (to_x) {
      const T* factor = run.input(y).data<T>();
      to_x->Run(run, x_transposed ? factor : gradient, x_transposed ? gradient : factor,
                run.output(dx).data<T>());
    }
    if (to_y) {
      const T* factor = run.input(x).data<T>();
      to_y->Run(run, y_transposed ? gradient : factor, y_transposed ? factor : gradient,
                run.output(dy).data<T>());
    }
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "trans_x",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "X's matrices lie transposed."},
          {.name = "trans_y",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "Y's matrices lie transposed."}};
}

}  // namespace

void RegisterMatmulV2(OpRegistry& registry) {
  registry.Add(
      {.type = "matmul_v2",
       .doc =
           "Out = op(X) * op(Y) on the last two dims; the dims before broadcast. A vector X is a "
           "row, a vector Y a column. PaddlePaddle's matmul_v2.",
       .inputs = {{.name = "X", .doc = "The left factor, of rank 1 or more."},
                  {.name = "Y", .doc = "The right factor, of rank 1 or more."}},
       .outputs = {{.name = "Out", .doc = "The products; [1] for two vectors."}},
       .attrs = Attributes(),
       .infer = Infer,
       .grad = GradOp("matmul_v2_grad", {"X", "Y", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"})});
  registry.Add({.type = "matmul_v2_grad",
                .doc = "The gradient of matmul_v2, with P = op(X), Q = op(Y): dP = dOut * Q', "
                       "dQ = P' * dOut, summed over broadcast dims.",
                .inputs = {{.name = "X", .doc = "The left factor."},
                           {.name = "Y", .doc = "The right factor."},
                           {.name = "Out@GRAD", .doc = "The gradient of Out."}},
                .outputs = {{.name = "X@GRAD", .doc = "Of X's shape.", .dispensable = true},
                            {.name = "Y@GRAD", .doc = "Of Y's shape.", .dispensable = true}},
                .attrs = Attributes(),
                .infer = InferGrad,
                .no_gradient_reason = "second derivatives are not provided"});
  registry.AddCpuKernels<float, double>(
      "matmul_v2", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("matmul_v2_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
