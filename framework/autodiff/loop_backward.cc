#include "framework/autodiff/loop_backward.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/analysis/nested_blocks.h"
#include "framework/analysis/op_uses.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/block_rule.h"
#include "framework/op/grad.h"
#include "framework/op/grad_name.h"

namespace skiff {
namespace {

using Kind = BlockRule::Kind;
using NameSet = std::set<std::string>;

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

class LoopBackward {
 public:
  explicit LoopBackward(const BlockGradientRequest& request)
      : request_(request),
        op_(*request.outer.ops()[request.position]),
        def_(request.registry.Get(op_.type)),
        kind_(def_.block->kind),
        block_(*request.outer.program()->block(op_.SubBlocks().at(0))) {}

  BlockGradient Run() {
    FindCarried();
    FindWanting();
    BlockGradient gradient = FindSeeds();
    gradient.forward = &block_;
    gradient.is_loop = kind_ != Kind::kConditional;
    gradient.seeds = seeds_;
    if (kind_ != Kind::kRecurrent) {
      gradient.carried = seeds_;
      for (const std::string& x : seeds_) {
        if (!gradient.inner->Reaches(x)) gradient.reset.insert(x);
      }
    }
    gradient.added_inputs = {.slot = SlotsOf(kind_).captured, .arguments = MissingInputs(gradient)};
    gradient.op = GradientOp(gradient);
    return gradient;
  }

 private:
  // Returns the variables outside whose gradients the block makes and that the op doesn't name:
  // those that go from iteration to iteration, and those that blocks inside write first.
  std::vector<std::string> MissingInputs(const BlockGradient& gradient) const {
    std::vector<std::string> missing;
    const std::vector<std::string> named = op_.InputNames();
    for (const VarUse& use : UsesOf(request_.registry, request_.outer, request_.position).vars) {
      const std::string& x = use.var->name;
      const bool is_carried = gradient.carried.contains(x) && HasInitialValue(x);
      const bool is_read = gradient.inner->Reaches(x) && request_.wanted.contains(x);
      if ((is_carried || is_read) && !Contains(named, x)) missing.push_back(x);
    }
    return missing;
  }

  // Finds the variables that an iteration hands to the next one, under the names by which the next
  // one finds them: `end_of_` tells those under which the iteration before leaves them.
  void FindCarried() {
    if (kind_ == Kind::kRecurrent) {
      using Names = std::vector<std::string>;
      const Names before = op_.Attr<Names>("ex_states", {});
      const Names after = op_.Attr<Names>("states", {});
      const Names& initial = op_.Input("initial_states");
      const size_t count = std::min({before.size(), after.size(), initial.size()});
      for (size_t i = 0; i < count; ++i) {
        end_of_[before[i]] = after[i];
        if (request_.wanted.contains(initial[i])) wanting_.insert(before[i]);
      }
      return;
    }
    for (const VarUse& use : UsesOf(request_.registry, request_.outer, request_.position).vars) {
      if (!use.writes || use.var->persistable || use.var->kind == VarKind::kStepScopes) continue;
      end_of_[use.var->name] = use.var->name;
      if (request_.wanted.contains(use.var->name)) wanting_.insert(use.var->name);
    }
  }

  bool LeafWants(const Var& var) const {
    if (request_.excluded(var)) return false;
    if (end_of_.contains(var.name)) return wanting_.contains(var.name);
    const bool is_local = block_.FindLocalVar(var.name) == &var;
    const bool is_part = kind_ == Kind::kRecurrent && Contains(op_.Input("inputs"), var.name);
    return (!is_local || is_part) && request_.wanted.contains(var.name);
  }

  std::unique_ptr<BlockBackward> MakeInner(BackwardNames* names) {
    auto inner = std::make_unique<BlockBackward>(
        request_.registry, DifferentiateBlock, names, block_,
        // A copy of what wants a gradient now: the object outlives this one.
        [copy = *this](const Var& var) { return copy.LeafWants(var); }, request_.excluded);
    NameSet captured, persistables;
    if (kind_ != Kind::kRecurrent) {
      for (const auto& [name, end] : end_of_) captured.insert(name);
    }
    for (const VarUse& use : UsesOf(request_.registry, request_.outer, request_.position).vars) {
      if (use.writes && use.var->persistable) persistables.insert(use.var->name);
    }
    inner->SetBody(kind_ != Kind::kConditional, std::move(captured), std::move(persistables));
    return inner;
  }

  // Finds the carried variables that want a gradient when an iteration begins.
  void FindWanting() {
    bool changed = kind_ != Kind::kConditional;
    while (changed) {
      changed = false;
      BackwardNames names(nullptr);
      const auto inner = MakeInner(&names);
      for (const auto& [begin, end] : end_of_) {
        const Var* var = VisibleVars(block_).Find(begin).var;
        const bool may_want = var != nullptr && IsFloat(var->dtype) && !request_.excluded(*var);
        if (may_want && inner->WantsGradient(end)) changed |= wanting_.insert(begin).second;
      }
    }
  }

  // Finds the variables whose gradients exist when the gradient block begins, and differentiates
  // the block for them.
  BlockGradient FindSeeds() {
    seeds_ = request_.given;
    while (true) {
      BlockGradient gradient;
      gradient.names = std::make_unique<BackwardNames>(nullptr);
      gradient.inner = MakeInner(gradient.names.get());
      // A value that the block sets to a constant hands the gradient on to the one before wherever
      // the block doesn't run.
      std::erase_if(seeds_, [&](const std::string& x) {
        return !gradient.inner->WantsGradient(x) && !wanting_.contains(x);
      });
      for (const std::string& x : seeds_) gradient.inner->SeedFromOutside(x);
      gradient.inner->Differentiate(block_.ops().size());
      bool changed = false;
      for (const auto& [begin, end] : end_of_) {
        const bool is_handed_on = kind_ != Kind::kConditional && gradient.inner->Reaches(begin);
        if (is_handed_on) changed |= seeds_.insert(end).second;
      }
      if (!changed) return gradient;
    }
  }

  bool HasInitialValue(const std::string& x) const {
    const Var* var = VisibleVars(request_.outer).Find(x).var;
    const Definition* before = request_.definitions.Before(request_.position, var);
    return before != nullptr && before->origin != Origin::kUnknown;
  }

  Op GradientOp(const BlockGradient& gradient) {
    Op forward = op_;
    const BlockSlots slots = SlotsOf(kind_);
    if (!gradient.added_inputs.arguments.empty()) {
      std::vector<std::string> captured = op_.Input(slots.captured);
      for (const std::string& x : gradient.added_inputs.arguments) captured.push_back(x);
      forward.SetInput(slots.captured, std::move(captured));
    }
    const auto wants = [&](const std::string& x) {
      return gradient.carried.contains(x) || gradient.inner->Reaches(x);
    };
    Op made = def_.grad(GradContext(forward, def_, wants)).at(0);
    if (kind_ == Kind::kRecurrent) {
      // By place: several states may begin as one variable.
      const auto before = op_.Attr<std::vector<std::string>>("ex_states", {});
      std::vector<std::string> states = op_.Input("initial_states");
      for (size_t i = 0; i < states.size(); ++i) {
        const bool is_made = i < before.size() && gradient.inner->Reaches(before[i]);
        states[i] = is_made ? GradName(states[i]) : kEmptyVarName;
      }
      if (!states.empty()) made.SetOutput("initial_states@GRAD", std::move(states));
      return made;
    }
    std::vector<std::string> seeds;
    for (const std::string& x : seeds_) seeds.push_back(GradName(x));
    made.SetInput(std::string(slots.results) + kGradSuffix, seeds);
    made.SetAttr(kInnerGradientsAttr, seeds);
    return made;
  }

  const BlockGradientRequest request_;
  const Op& op_;
  const OpDef& def_;
  const Kind kind_;
  const Block& block_;
  std::map<std::string, std::string> end_of_;
  NameSet wanting_;  // carried variables
  NameSet seeds_;
};

}  // namespace

BlockGradient DifferentiateBlock(const BlockGradientRequest& request) {
  return LoopBackward(request).Run();
}

}  // namespace skiff
