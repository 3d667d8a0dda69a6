// argsort: sorts X along an axis and returns where its elements were. Equal elements keep their
// order, and NaN counts as the largest.
// Source: Fluid's argsort. Gradient: dX at the indices is dOut.
#include <algorithm>
#include <memory>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/input_checks.h"
#include "operators/math/kernels/element_order.h"

namespace skiff {
namespace {

AxisExtents ExtentsOf(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  return ExtentsOfAxis(x, AxisIndex(context, x, context.IntAttr("axis")));
}

void Infer(OpContext& context) {
  AxisIndex(context, context.Input("X").shape, context.IntAttr("axis"));
  context.SetOutputLike("Out", "X");
  context.SetOutputLike("Indices", "X");
  context.SetOutput("Indices", context.Input("X").shape, DType::kInt64);
}

void InferGrad(OpContext& context) {
  const Shape& x = context.Input("X").shape;
  AxisIndex(context, x, context.IntAttr("axis"));
  CheckInputLike(context, "Indices", x, DType::kInt64);
  CheckInputLike(context, "Out@GRAD", x, context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  using Item = std::pair<T, int64_t>;
  const AxisExtents extents = ExtentsOf(context);
  const bool descending = context.Attr<bool>("descending");
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const Out<int64_t> indices(context, "Indices");
  const int64_t count = context.Input("X").shape.element_count();
  const int memory =
      context.RequestWorkspace(MultiplyCounts(count, static_cast<int64_t>(sizeof(Item))));
  return MakeKernel([=](const KernelContext& run) {
    const auto sort_lines = [=, x = x(run), out = out(run), indices = indices(run),
                             items = static_cast<Item*>(run.workspace(memory))](int64_t begin,
                                                                                int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t start = extents.Start(line);
        Item* first = items + line * extents.length;
        // Sorts pairs, not indices: a comparison then reads contiguous memory instead of X at
        // random places. The index makes each pair unique, so std::sort is stable here and needs no
        // memory of its own.
        for (int64_t i = 0; i < extents.length; ++i) {
          new (first + i) Item(x[start + i * extents.inner], i);
        }
        if (descending) {
          std::sort(first, first + extents.length, [](const Item& a, const Item& b) {
            return StandsBefore<true>(a.first, a.second, b.first, b.second);
          });
        } else {
          std::sort(first, first + extents.length, [](const Item& a, const Item& b) {
            return StandsBefore<false>(a.first, a.second, b.first, b.second);
          });
        }
        for (int64_t i = 0; i < extents.length; ++i) {
          if (out != nullptr) out[start + i * extents.inner] = first[i].first;
          if (indices != nullptr) indices[start + i * extents.inner] = first[i].second;
        }
      }
    };
    ParallelFor(extents.lines(), extents.grain(), sort_lines);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const AxisExtents extents = ExtentsOf(context);
  const In<int64_t> indices(context, "Indices");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeKernel([=](const KernelContext& run) {
    SpreadToPlaces("argsort_grad", extents, extents.length, indices(run), gradient(run), dx(run));
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "axis",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-1}),
           .doc = "The axis; negative ones count from the back."},
          {.name = "descending",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "The largest comes first."}};
}

}  // namespace

void RegisterArgsort(OpRegistry& registry) {
  OpDef def = {.type = "argsort",
               .doc =
                   "Out = X sorted along `axis`, Indices = where its elements were in X. "
                   "Fluid's argsort.",
               .inputs = {{.name = "X", .doc = "Of any shape."}},
               .outputs = {{.name = "Out", .doc = "Like X.", .dispensable = true},
                           {.name = "Indices", .doc = "Of X's shape, int64.", .dispensable = true}},
               .attrs = Attributes(),
               .infer = Infer,
               .in_place = {{"X", "Out"}}};
  // The only float input is taken as it is.
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {Checked("Indices"), ForShape("X"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "The gradient of argsort: dX at Indices is dOut.";
  grad.infer = InferGrad;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "argsort", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "argsort_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
