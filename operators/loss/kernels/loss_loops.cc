#include "operators/loss/kernels/loss_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/loss/kernels/loss_loops.cc"
#include "hwy/foreach_target.h"
#include "operators/common/cpu/element_formula-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

#include "operators/loss/kernels/bce_loss_formula-inl.h"
#include "operators/loss/kernels/huber_loss_formula-inl.h"
#include "operators/loss/kernels/kldiv_loss_formula-inl.h"
#include "operators/loss/kernels/log_loss_formula-inl.h"
#include "operators/loss/kernels/margin_rank_loss_formula-inl.h"
#include "operators/loss/kernels/sigmoid_cross_entropy_with_logits_formula-inl.h"
#include "operators/loss/kernels/smooth_l1_loss_formula-inl.h"

// The loops of two formulas.
template <class Formula, class GradFormula>
LossLoops LoopsOf() {
  return {VectorLoopOfFormula<Formula>, VectorLoopOfFormula<GradFormula>};
}

LossLoops BceLossLoops() { return LoopsOf<BceLossFormula, BceLossGradFormula>(); }
LossLoops HuberLossLoops() { return LoopsOf<HuberLossFormula, HuberLossGradFormula>(); }
LossLoops KldivLossLoops() { return LoopsOf<KldivLossFormula, KldivLossGradFormula>(); }
LossLoops LogLossLoops() { return LoopsOf<LogLossFormula, LogLossGradFormula>(); }
LossLoops MarginRankLossLoops() {
  return LoopsOf<MarginRankLossFormula, MarginRankLossGradFormula>();
}
LossLoops SigmoidLossLoops() { return LoopsOf<SigmoidLossFormula, SigmoidLossGradFormula>(); }
LossLoops SmoothL1LossLoops() { return LoopsOf<SmoothL1LossFormula, SmoothL1LossGradFormula>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(BceLossLoops);
LossLoops BceLossLoops() { return HWY_DYNAMIC_DISPATCH(BceLossLoops)(); }

HWY_EXPORT(HuberLossLoops);
LossLoops HuberLossLoops() { return HWY_DYNAMIC_DISPATCH(HuberLossLoops)(); }

HWY_EXPORT(KldivLossLoops);
LossLoops KldivLossLoops() { return HWY_DYNAMIC_DISPATCH(KldivLossLoops)(); }

HWY_EXPORT(LogLossLoops);
LossLoops LogLossLoops() { return HWY_DYNAMIC_DISPATCH(LogLossLoops)(); }

HWY_EXPORT(MarginRankLossLoops);
LossLoops MarginRankLossLoops() { return HWY_DYNAMIC_DISPATCH(MarginRankLossLoops)(); }

HWY_EXPORT(SigmoidLossLoops);
LossLoops SigmoidLossLoops() { return HWY_DYNAMIC_DISPATCH(SigmoidLossLoops)(); }

HWY_EXPORT(SmoothL1LossLoops);
LossLoops SmoothL1LossLoops() { return HWY_DYNAMIC_DISPATCH(SmoothL1LossLoops)(); }

}  // namespace skiff
#endif  // HWY_ONCE
