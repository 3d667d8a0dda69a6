// nll_loss: for log-probabilities X [n, classes, …], l = -Weight[label] * X[label] for each item.
// Out is l (reduction none), its sum, or its sum divided by Total_weight, the sum of the weights of
// the items (mean). An item whose label is ignore_index has the weight 0.
// Source: PaddlePaddle's nll_loss, whose X has 2 or 4 dims, and whose mean is 0 if Total_weight is.
//
// X@GRAD[label] = -Weight[label] * Out@GRAD, divided as Out is; 0 for all other classes.
#include <algorithm>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/input_checks.h"
#include "operators/common/memory_mover.h"
#include "operators/loss/kernels/labels.h"
#include "operators/loss/kernels/nll_reduction.h"

namespace skiff {
namespace {

// The number of items whose losses one thread sums, so that no sum depends on the number of
// threads.
constexpr int64_t kPart = 4096;
constexpr int64_t kGrainElements = 16384;

int64_t PartsOf(int64_t items) { return (items + kPart - 1) / kPart; }

Shape ItemsOf(const Shape& x, const Shape& label) {
  if (label.rank() == x.rank()) return LossShape(x, 1);
  Shape items;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis != 1) items.Append(x[axis]);
  }
  return items;
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.shape.rank() >= 2, kInvalidArgument, context.op().type, ": X is of shape ",
                x.shape, ", expected [n, classes, ...]");
  const TensorMeta& label = context.Input("Label");
  CheckLabel(context.op().type, x, label, 1, /*is_soft=*/false);
  if (context.HasInput("Weight")) CheckInputLike(context, "Weight", {x.shape[1]}, x.dtype);
  const bool is_reduced = NllReductionOf(context) != NllReduction::kNone;
  if (!is_reduced) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", is_reduced ? Shape() : ItemsOf(x.shape, label.shape), x.dtype);
  context.SetOutput("Total_weight", Shape(), x.dtype);
}

// The items of a run. Calls visit(item, place in X, weight) for those that count.
template <typename T>
struct NllItems {
  template <typename Visit>
  void ForEach(int64_t begin, int64_t end, FirstBadIndex* bad, const Visit& visit) const {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t label = labels[item];
      if (label == ignore_index) continue;
      if (label < 0 || label >= extents.length) {
        bad->Record(item);
        continue;
      }
      visit(item, extents.Start(item) + label * extents.inner,
            weights == nullptr ? T{1} : weights[label]);
    }
  }

  void Refuse(const FirstBadIndex& bad, std::string_view op) const {
    ThrowIfFound(bad, op, labels, extents.length, ignore_index);
  }

  AxisExtents extents;  // of the classes
  LabelReader labels;
  const T* weights;  // nullptr: all 1
  int64_t ignore_index;
};

// What forward and gradient kernels read besides X.
template <typename T>
struct NllArguments {
  explicit NllArguments(const OpContext& context)
      : label(context, "Label"),
        weight(context, "Weight"),
        ignore_index(context.IntAttr("ignore_index")),
        reduction(NllReductionOf(context)) {}

  NllItems<T> ItemsOf(const KernelContext& run, const Shape& x) const {
    return {ExtentsOfAxis(x, 1), LabelReader(label.tensor(run)), weight(run), ignore_index};
  }

  In<> label;
  In<T> weight;
  int64_t ignore_index;
  NllReduction reduction;
};

template <typename T>
void ItemLosses(const NllItems<T>& items, const T* x, T* losses) {
  FirstBadIndex bad;
  ParallelFor(items.extents.lines(), kGrainElements / 8, [&](int64_t begin, int64_t end) {
    std::fill(losses + begin, losses + end, T{0});
    items.ForEach(begin, end, &bad, [&](int64_t item, int64_t place, T weight) {
      losses[item] = -weight * x[place];
    });
  });
  items.Refuse(bad, "nll_loss");
}

struct NllSums {
  double loss = 0;
  double weight = 0;
};

// `parts` has room for the sums of each part.
template <typename T>
NllSums SumOfLosses(const NllItems<T>& items, const T* x, NllSums* parts) {
  FirstBadIndex bad;
  const int64_t count = PartsOf(items.extents.lines());
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      NllSums sums;
      const int64_t first = part * kPart;
      const int64_t last = std::min(first + kPart, items.extents.lines());
      items.ForEach(first, last, &bad, [&](int64_t, int64_t place, T weight) {
        sums.loss -= static_cast<double>(weight) * static_cast<double>(x[place]);
        sums.weight += static_cast<double>(weight);
      });
      parts[part] = sums;
    }
  });
  items.Refuse(bad, "nll_loss");
  // In the order of the parts, whichever thread computed them.
  NllSums total;
  for (int64_t part = 0; part < count; ++part) {
    total.loss += parts[part].loss;
    total.weight += parts[part].weight;
  }
  return total;
}

template <typename T>
std::unique_ptr<Kernel> PrepareNllLoss(PrepareContext& context) {
  const NllArguments<T> arguments(context);
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const Out<T> total_weight(context, "Total_weight");
  const int64_t parts = PartsOf(ExtentsOfAxis(context.Input("X").shape, 1).lines());
  const int scratch =
      context.RequestWorkspace(std::max<int64_t>(parts, 1) * static_cast<int64_t>(sizeof(NllSums)));
  return MakeRowsKernel([=](const KernelContext& run) {
    const NllItems<T> items = arguments.ItemsOf(run, x.shape(run));
    NllSums sums;
    if (arguments.reduction == NllReduction::kNone) {
      ItemLosses(items, x(run), out(run));
    } else {
      sums = SumOfLosses(items, x(run), static_cast<NllSums*>(run.workspace(scratch)));
      *out(run) = static_cast<T>(ReducedNll(arguments.reduction, sums.loss, sums.weight));
    }
    *total_weight(run) = static_cast<T>(sums.weight);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareNllLossGrad(PrepareContext& context) {
  const NllArguments<T> arguments(context);
  const In<T> gradient(context, "Out@GRAD");
  const In<T> total_weight(context, "Total_weight");
  const Out<T> x_gradient(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    Tensor& dx = x_gradient.tensor(run);
    const NllItems<T> items = arguments.ItemsOf(run, dx.shape());
    const T* dout = gradient(run);
    T* to = x_gradient(run);
    const int64_t step = arguments.reduction == NllReduction::kNone ? 1 : 0;
    const T total = *total_weight(run);
    ZeroBytes(to, dx.byte_count());
    FirstBadIndex bad;
    ParallelFor(items.extents.lines(), kGrainElements / 8, [&](int64_t begin, int64_t end) {
      items.ForEach(begin, end, &bad, [&](int64_t item, int64_t place, T weight) {
        to[place] = NllGradient(arguments.reduction, weight, dout[item * step], total);
      });
    });
    items.Refuse(bad, "nll_loss_grad");
  });
}

}  // namespace

void RegisterNllLoss(OpRegistry& registry) {
  OpDef def = {
      .type = "nll_loss",
      .doc = "Out = -Weight[Label] * X[Label] of each item, reduced.",
      .inputs = {{.name = "X", .doc = "Log-probabilities, [n, classes, ...]."},
                 {.name = "Label",
                  .doc = "Classes, [n, ...], int64 or int32.",
                  .checks_data = true},
                 {.name = "Weight",
                  .doc = "The weight of each class, [classes]; absent: all 1.",
                  .dispensable = true}},
      .outputs = {{.name = "Out", .doc = "The losses, of Label's shape; of rank 0 if reduced."},
                  {.name = "Total_weight",
                   .doc = "The sum of the items' weights; 0 unless Out is reduced.",
                   .intermediate = true,
                   .keeps_float32 = true}},
      .attrs = {{.name = "ignore_index",
                 .type = AttrType::kLong,
                 .default_value = int64_t{-100},
                 .doc = "Items of this label have loss, weight and gradient 0."},
                ChoiceAttr("reduction", "mean", {"none", "mean", "sum"}, "none, mean or sum.")},
      .infer = Infer};
  def.precision = Precision::kHigh;
  OpDef grad =
      GradientOf(&def, {ForShape("X"), "Label", "Weight", "Total_weight", OneOfAnyRank("Out@GRAD")},
                 {"X@GRAD"});
  grad.doc = "X@GRAD[Label] = -Weight[Label] * Out@GRAD, divided as Out is, else 0.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "nll_loss", []<typename T>(PrepareContext& context) { return PrepareNllLoss<T>(context); });
  registry.AddCpuKernels<float, double>("nll_loss_grad", []<typename T>(PrepareContext& context) {
    return PrepareNllLossGrad<T>(context);
  });
}

}  // namespace skiff
