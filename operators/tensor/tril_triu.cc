// tril_triu: Out = X below and on a diagonal (`lower`), or on and above it; 0 elsewhere.
//
//   lower: Out[..., i, j] = X[..., i, j] where j - i <= diagonal
//   else:  Out[..., i, j] = X[..., i, j] where j - i >= diagonal
//
// Source: Fluid's tril_triu. The gradient cuts Out@GRAD in the same way.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

void InferTriangle(OpContext& context, const std::string& from, const std::string& to) {
  const Shape& shape = context.Input(from).shape;
  SKIFF_ENFORCE(shape.rank() >= 2, kInvalidArgument, context.op().type, ": ", from, " has shape ",
                shape, ", expected matrices");
  context.SetOutputLike(to, from);
}

// Writes one row of a triangle: zeros, then elements [first, last), then zeros. In place, the
// elements are already there.
void CutRow(const char* from, int64_t first, int64_t last, int64_t columns, int64_t element_bytes,
            char* to) {
  const auto bytes = [element_bytes](int64_t count) {
    return static_cast<size_t>(count * element_bytes);
  };
  std::fill_n(to, bytes(first), 0);
  if (from != to) std::copy_n(from + bytes(first), bytes(last - first), to + bytes(first));
  std::fill_n(to + bytes(last), bytes(columns - last), 0);
}

std::unique_ptr<Kernel> PrepareTriangle(const PrepareContext& context, const std::string& from,
                                        const std::string& to) {
  const TensorMeta& x = context.Input(from);
  const int64_t columns = x.shape.dim(-1);
  const int64_t rows = x.shape.dim(-2);
  const int64_t all_rows = x.shape.element_count(0, x.shape.rank() - 1);
  const int64_t bytes = SizeOf(x.dtype);
  const int64_t grain =
      std::max<int64_t>(1, (int64_t{64} << 10) / std::max<int64_t>(1, columns * bytes));
  return MakeKernel([=, diagonal = context.IntAttr("diagonal"), lower = context.Attr<bool>("lower"),
                     input = In<>(context, from),
                     output = Out<>(context, to)](const KernelContext& run) {
    const char* source = static_cast<const char*>(input(run));
    char* target = static_cast<char*>(output(run));
    ParallelFor(all_rows, grain, [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t on_diagonal = row % rows + diagonal;
        const int64_t first = lower ? 0 : std::clamp<int64_t>(on_diagonal, 0, columns);
        const int64_t last = lower ? std::clamp<int64_t>(on_diagonal + 1, 0, columns) : columns;
        const int64_t offset = row * columns * bytes;
        CutRow(source + offset, first, last, columns, bytes, target + offset);
      }
    });
  });
}

}  // namespace

void RegisterTrilTriu(OpRegistry& registry) {
  OpDef def;
  def.type = "tril_triu";
  def.doc = "Out = X where j - i <= diagonal (`lower`) or >= diagonal, 0 elsewhere.";
  def.inputs = {{.name = "X", .doc = "Matrices, of rank 2 or more."}};
  def.outputs = {{.name = "Out", .doc = "Of X's shape."}};
  def.attrs = {{.name = "diagonal",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "j - i on the diagonal that bounds the triangle, which includes it."},
               {.name = "lower",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "The triangle below the diagonal; else the one above."}};
  def.infer = [](OpContext& context) { InferTriangle(context, "X", "Out"); };
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  OpDef grad = GradientOf(&def, {"Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD in the triangle, 0 outside.";
  grad.infer = [](OpContext& context) { InferTriangle(context, "Out@GRAD", "X@GRAD"); };
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "tril_triu", [](PrepareContext& context) {
    return PrepareTriangle(context, "X", "Out");
  });
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "tril_triu_grad", [](PrepareContext& context) {
    return PrepareTriangle(context, "Out@GRAD", "X@GRAD");
  });
}

}  // namespace skiff
