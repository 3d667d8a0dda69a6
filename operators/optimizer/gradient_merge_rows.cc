// gradient_merge_rows: gradient_merge of one parameter whose gradient is selected rows. Out has the
// selected rows that the round's batches would have given as one batch: in the last run of a round,
// each row that a gradient of the round had, once, in ascending order; in the other runs, none.
//
// So an update of touched rows only (lazy_mode, ftrl) works after a merge, too. The sums of a round
// are in a dense tensor, as batches have any number of rows. Only its touched rows have a meaning,
// so a round begins without a pass over the whole tensor. Out has as many slots as the parameter
// has rows, so that its shape doesn't depend on data.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/merged_rows.h"
#include "operators/common/selected_rows.h"
#include "operators/optimizer/kernels/gradient_merge_definition.h"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& sums = context.Input("Accumulated");
  const TensorMeta& grad = context.Input("Grad");
  const TensorMeta& touched = context.Input("Touched");
  SKIFF_ENFORCE(grad.is_selected_rows(), kInvalidArgument, "gradient_merge_rows: Grad is a dense ",
                grad.dtype, " ", grad.shape, ", expected selected rows");
  SKIFF_ENFORCE(DimsAgree(grad.dense_shape().dims(), sums.shape.dims()) && grad.dtype == sums.dtype,
                kInvalidArgument, "gradient_merge_rows: Grad represents ", grad.dtype, " ",
                grad.dense_shape(), ", expected ", sums.dtype, " ", sums.shape, " as Accumulated");
  const Shape rows{sums.shape[0]};
  SKIFF_ENFORCE(DimsAgree(touched.shape.dims(), rows.dims()) && touched.dtype == DType::kBool,
                kInvalidArgument, "gradient_merge_rows: Touched is ", touched.dtype, " ",
                touched.shape, ", expected bool ", rows, ", one for each row of Accumulated");
  CheckRound(context);
  context.SetOutputLike("AccumulatedOut", "Accumulated");
  context.SetOutputLike("TouchedOut", "Touched");
  context.SetSelectedRows("Out", sums.shape, sums.dtype, sums.shape[0]);
}

template <typename T>
class GradientMergeRows final : public Kernel {
 public:
  explicit GradientMergeRows(PrepareContext& context)
      : round_(context),
        sums_(PairsOf(context, "Accumulated", "AccumulatedOut").front()),
        touched_(PairsOf(context, "Touched", "TouchedOut").front()),
        grad_(context, "Grad"),
        out_(context, "Out"),
        width_(RowWidth(context.Input("Grad").shape)),
        grain_(std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width_))),
        workspace_(
            context.RequestWorkspace(MergedRowsWorkspaceBytes(context.Input("Grad").shape[0]))) {}

  void Run(const KernelContext& run) override {
    const RoundPosition position = round_.Position(run);
    // Untouched rows must have the same values in the outputs, if these aren't the inputs.
    const UpdateArguments::Pair kept[] = {sums_, touched_};
    CopyToOutputs(run, kept);
    if (position.is_first) std::ranges::fill(run.output(touched_.out).values<bool>(), false);
    Add(run);
    std::ranges::fill(out_.tensor(run).rows(), -1);
    if (position.is_last) Gather(run, static_cast<T>(position.factor));
  }

 private:
  void Add(const KernelContext& run) const {
    const Tensor& grad = grad_.tensor(run);
    const MergedRows rows = MergeRows(grad.rows(), grad.height(), run.workspace(workspace_));
    const T* values = grad.data<T>();
    T* sums = run.output(sums_.out).template data<T>();
    bool* touched = run.output(touched_.out).template data<bool>();
    // A row is the work of one thread, which adds its slots in order.
    ParallelFor(rows.count(), grain_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* sum = sums + rows.row(i) * width_;
        for (const int64_t slot : rows.slots(i)) {
          const T* added = values + slot * width_;
          if (touched[rows.row(i)]) {
            AddArrays(sum, added, sum, width_);
          } else {
            std::copy_n(added, width_, sum);
          }
          touched[rows.row(i)] = true;
        }
      }
    });
  }

  void Gather(const KernelContext& run, T factor) const {
    const std::span<const bool> touched = run.output(touched_.out).template values<bool>();
    const T* sums = run.output(sums_.out).template data<T>();
    Tensor& out = out_.tensor(run);
    const std::span<int64_t> rows = out.rows();
    T* to = out.data<T>();
    int64_t count = 0;
    for (size_t row = 0; row < touched.size(); ++row) {
      if (touched[row]) rows[static_cast<size_t>(count++)] = static_cast<int64_t>(row);
    }
    ParallelFor(count, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ScaleArray(sums + rows[static_cast<size_t>(i)] * width_, factor, to + i * width_, width_);
      }
    });
  }

  Round round_;
  UpdateArguments::Pair sums_;
  UpdateArguments::Pair touched_;
  In<T> grad_;
  Out<T> out_;
  int64_t width_;
  int64_t grain_;  // rows that are worth a thread
  int workspace_;
};

}  // namespace

void RegisterGradientMergeRows(OpRegistry& registry) {
  registry.Add(
      {.type = "gradient_merge_rows",
       .doc = "gradient_merge of one parameter whose gradient is selected rows: the rows of "
              "AccumulatedOut that gradients had since Count was 1 are their sums; Out is these "
              "rows once Count is `steps`, with `mean` times 1 / Count, and none before.",
       .inputs = {{.name = "Accumulated",
                   .doc = "The sums so far, float32 or float64, of the parameter's shape."},
                  {.name = "Touched",
                   .doc = "One bool per row: whether a gradient of the round had it."},
                  {.name = "Grad", .doc = "The gradient to add.", .selected_rows = true},
                  RoundCountSlot()},
       .outputs = {{.name = "AccumulatedOut", .doc = "The sums; usually Accumulated itself."},
                   {.name = "TouchedOut", .doc = "Touched, with the rows of Grad."},
                   {.name = "Out",
                    .doc = "Selected rows, each at most once, in as many slots as the parameter "
                           "has rows.",
                    .selected_rows = true}},
       .attrs = RoundAttrs(),
       .infer = Infer,
       .no_gradient_reason = "updates of parameters are not differentiated",
       .kernel_dtype_slot = "Accumulated",
       .in_place = {{"Accumulated", "AccumulatedOut"}, {"Touched", "TouchedOut"}},
       .accumulation =
           AccumulationRule{.gradient = "Grad", .count = "Count", .steps = "steps", .sum = "Out"},
       .precision = Precision::kNone});
  registry.AddSelectedRowsKernels<float, double>(
      "gradient_merge_rows", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<GradientMergeRows<T>>(context);
      });
}

}  // namespace skiff
