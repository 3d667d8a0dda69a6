// ftrl: SquaredAccumOut = SquaredAccumulator + g²,
// sigma = (SquaredAccumOut^-lr_power - SquaredAccumulator^-lr_power) / LearningRate,
// LinearAccumOut = LinearAccumulator + g - sigma * Param,
// ParamOut = (sign(LinearAccumOut) * a - LinearAccumOut) /
//            (SquaredAccumOut^-lr_power / LearningRate + 2 * b), or 0 where |LinearAccumOut| < a,
// with a = l1 + 1e-10 and b = l2 + 1e-10. With a LearningRate of 0 nothing changes.
//
// Source: McMahan et al. 2013, algorithm 1, in the form of Fluid 1.x (2.6.2 no longer has its
// kernel): without beta, with twice the l2, and with 1e-10 added to both penalties so that the
// quotient is finite. At a rate of 0, as in the first step of a warm-up, Fluid divides by it and
// has NaN from then on. For g, see kernels/update_op.h.
#include "operators/optimizer/kernels/register_update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/ftrl.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/optimizer/kernels/ftrl_formula-inl.h"

UpdateLoopSet FtrlLoops(bool is_root) {
  return is_root ? LoopsOf<FtrlFormula<true>>() : LoopsOf<FtrlFormula<false>>();
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(FtrlLoops);

UpdateOp FtrlOp() {
  return {
      .type = "ftrl",
      .doc =
          "SquaredAccumOut = SquaredAccumulator + Grad²; sigma = (SquaredAccumOut^-lr_power - "
          "SquaredAccumulator^-lr_power) / LearningRate; LinearAccumOut = LinearAccumulator + Grad "
          "- sigma Param; ParamOut = (sign(LinearAccumOut) a - LinearAccumOut) / "
          "(SquaredAccumOut^-lr_power / LearningRate + 2 b), or 0 where |LinearAccumOut| < a; a = "
          "l1 + 1e-10, b = l2 + 1e-10. With a LearningRate of 0 nothing changes.",
      .states = {{.input = "SquaredAccumulator",
                  .output = "SquaredAccumOut",
                  .doc = "The sums of the squared gradients, each of its parameter's shape."},
                 {.input = "LinearAccumulator",
                  .output = "LinearAccumOut",
                  .doc = "The linear terms, each of its parameter's shape."}},
      .attrs = {FloatAttr("l1", 0.0f, "The L1 penalty, which makes parameters exactly 0."),
                FloatAttr("l2", 0.0f, "The L2 penalty."),
                FloatAttr("lr_power", -0.5f, "How fast the learning rate falls.")}};
}

}  // namespace

void RegisterFtrl(OpRegistry& registry) {
  RegisterUpdateOp(
      registry, FtrlOp(),
      [](const OpContext& context) {
        // The default power is a root, which vectors compute; Pow goes through scalars.
        return HWY_DYNAMIC_DISPATCH(FtrlLoops)(context.Attr<float>("lr_power") == -0.5f);
      },
      [](const OpContext&) { return RuleOf<HWY_NAMESPACE::FtrlFormula<true>>(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
