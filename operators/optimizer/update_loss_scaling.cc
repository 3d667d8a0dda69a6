// update_loss_scaling: the scale of the loss and its counters after a step, and zeros in place of
// gradients that aren't all finite. Source: Fluid's update_loss_scaling.
//
//   FoundInfinite: Out = 0, OutGoodSteps = 0, OutBadSteps = InBadSteps + 1. If that is
//     decr_every_n_nan_or_inf, LossScaling = max(PrevLossScaling * decr_ratio, 1) and
//     OutBadSteps = 0.
//   else: Out = X, OutBadSteps = 0, OutGoodSteps = InGoodSteps + 1. If that is incr_every_n_steps,
//     LossScaling = PrevLossScaling * incr_ratio, unless that isn't finite, and OutGoodSteps = 0.
//
// LossScaling is PrevLossScaling otherwise. With stop_update, in whose place StopUpdate may be
// connected, it and both counters stay, and only Out depends on FoundInfinite. (Fluid's kernels
// don't write outputs that stay. Here these are copies, unless they share the storage of the
// inputs.) A counter that is past its limit, which was larger when the counter was saved, has
// reached it, too; in Fluid it never would.
#include <cstring>
#include <memory>
#include <utility>

#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/optimizer/kernels/loss_scale.h"
#include "operators/optimizer/kernels/scaled_gradients.h"
#include "operators/optimizer/kernels/update_op.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  InferScaledGradients(context);
  CheckOneElement(context, "FoundInfinite", {DType::kBool});
  CheckOneElement(context, "PrevLossScaling", {DType::kFloat32, DType::kFloat64});
  CheckOneElement(context, "InGoodSteps", {DType::kInt32});
  CheckOneElement(context, "InBadSteps", {DType::kInt32});
  CheckOneElement(context, "StopUpdate", {DType::kBool});
  context.SetOutputLike("LossScaling", "PrevLossScaling");
  context.SetOutputLike("OutGoodSteps", "InGoodSteps");
  context.SetOutputLike("OutBadSteps", "InBadSteps");
}

// Elements [begin, end) of `out` become those of `x`, or 0.
void KeepOrClear(const Tensor& x, bool clears, int64_t begin, int64_t end, Tensor* out) {
  const int64_t size = SizeOf(x.dtype());
  const auto bytes = static_cast<size_t>((end - begin) * size);
  char* to = static_cast<char*>(out->raw_data()) + begin * size;
  if (clears) {
    std::memset(to, 0, bytes);
  } else if (x.raw_data() != out->raw_data()) {
    std::memcpy(to, static_cast<const char*>(x.raw_data()) + begin * size, bytes);
  }
}

// T: the type of LossScaling.
template <typename T>
class UpdateLossScalingKernel final : public Kernel {
 public:
  explicit UpdateLossScalingKernel(const OpContext& context)
      : gradients_(context),
        found_infinite_(context, "FoundInfinite"),
        stop_update_(context, "StopUpdate"),
        scale_(context, "PrevLossScaling"),
        good_steps_(context, "InGoodSteps"),
        bad_steps_(context, "InBadSteps"),
        scale_out_(context, "LossScaling"),
        good_steps_out_(context, "OutGoodSteps"),
        bad_steps_out_(context, "OutBadSteps"),
        rule_(LossScaleRuleOf(context)),
        stops_(context.Attr<bool>("stop_update")) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const bool found_infinite = *found_infinite_(run);
    gradients_.ForEach(run, [&](const Tensor& x, Tensor& out, size_t, int64_t begin, int64_t end) {
      KeepOrClear(x, found_infinite, begin, end, &out);
    });
    const bool stops = stop_update_.is_there() ? *stop_update_(run) : stops_;
    const LossScaleState<T> now{*scale_(run), *good_steps_(run), *bad_steps_(run)};
    const LossScaleState<T> next = stops ? now : NextLossScale(now, found_infinite, rule_);
    *scale_out_(run) = next.scale;
    *good_steps_out_(run) = next.good_steps;
    *bad_steps_out_(run) = next.bad_steps;
  }

 private:
  ScaledGradients gradients_;
  In<bool> found_infinite_;
  In<bool> stop_update_;
  In<T> scale_;
  In<int32_t> good_steps_;
  In<int32_t> bad_steps_;
  Out<T> scale_out_;
  Out<int32_t> good_steps_out_;
  Out<int32_t> bad_steps_out_;
  LossScaleRule rule_;
  bool stops_;
};

// The two kinds of attributes, without defaults as in Fluid.
AttrDef StepsAttr(StaticText name, StaticText doc) {
  return {.name = name,
          .type = AttrType::kInt,
          .doc = doc,
          .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; },
          .expected = "at least 1"};
}

AttrDef RatioAttr(StaticText name, bool (*accepts)(float), StaticText expected, StaticText doc) {
  return {.name = name,
          .type = AttrType::kFloat,
          .doc = doc,
          .accepts = [accepts](const Attribute& value) { return accepts(std::get<float>(value)); },
          .expected = expected};
}

}  // namespace

void RegisterUpdateLossScaling(OpRegistry& registry) {
  OpDef def;
  def.type = "update_loss_scaling";
  def.doc =
      "The scale of the loss after a step, and zeros for Out if FoundInfinite, else X. After "
      "`incr_every_n_steps` steps in a row in which all gradients were finite, LossScaling = "
      "PrevLossScaling * `incr_ratio`, if that is finite; after `decr_every_n_nan_or_inf` steps "
      "in a row in which FoundInfinite was true, max(PrevLossScaling * `decr_ratio`, 1); else "
      "PrevLossScaling. A change of the scale, or a step of the other kind, sets the counter of "
      "such steps to 0. Only ratios that are powers of two keep unscaling exact.";
  def.inputs = {
      {.name = "X",
       .doc = "Gradients, of any shapes, each float16, bfloat16, float32 or float64; of selected "
              "rows, the values are kept or become 0.",
       .duplicable = true,
       .dispensable = true,
       .selected_rows = true},
      {.name = "FoundInfinite", .doc = "One bool: whether a gradient isn't finite."},
      {.name = "PrevLossScaling",
       .doc = "One element, float32 or float64: the scale of this step's loss, a number without a "
              "unit."},
      {.name = "InGoodSteps",
       .doc = "One int32: steps in a row, before this one, with finite gradients."},
      {.name = "InBadSteps",
       .doc = "One int32: steps in a row, before this one, with FoundInfinite."},
      {.name = "StopUpdate",
       .doc = "One bool, in place of `stop_update`; read in each run.",
       .dispensable = true}};
  def.outputs = {
      {.name = "Out",
       .doc = "One tensor for each X, of its shape and dtype; usually X itself.",
       .duplicable = true,
       .dispensable = true,
       .selected_rows = true},
      {.name = "LossScaling",
       .doc = "The scale of the next step's loss; usually PrevLossScaling itself."},
      {.name = "OutGoodSteps", .doc = "InGoodSteps after the step; usually that itself."},
      {.name = "OutBadSteps", .doc = "InBadSteps after the step; usually that itself."}};
  def.attrs = {
      StepsAttr("incr_every_n_steps", "Steps with finite gradients until the scale rises."),
      StepsAttr("decr_every_n_nan_or_inf", "Steps with FoundInfinite until the scale falls."),
      RatioAttr(
          "incr_ratio", [](float ratio) { return ratio >= 1; }, "at least 1",
          "What the scale is multiplied by when it rises."),
      RatioAttr(
          "decr_ratio", [](float ratio) { return ratio > 0 && ratio <= 1; },
          "above 0 and at most 1", "What the scale is multiplied by when it falls."),
      BoolAttr("stop_update", "Leaves the scale and its counters as they are.")};
  def.infer = Infer;
  def.no_gradient_reason = "updates of the loss's scale are not differentiated";
  def.kernel_dtype_slot = "PrevLossScaling";
  def.in_place = {{"X", "Out"},
                  {"PrevLossScaling", "LossScaling"},
                  {"InGoodSteps", "OutGoodSteps"},
                  {"InBadSteps", "OutBadSteps"}};
  def.precision = Precision::kNone;
  registry.Add(std::move(def));
  const auto prepare = []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
    return std::make_unique<UpdateLossScalingKernel<T>>(context);
  };
  registry.AddCpuKernels<float, double>("update_loss_scaling", prepare);
  registry.AddSelectedRowsKernels<float, double>("update_loss_scaling", prepare);
}

}  // namespace skiff
