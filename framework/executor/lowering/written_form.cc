#include "framework/executor/lowering/written_form.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/analysis/nested_blocks.h"
#include "framework/base/error.h"
#include "framework/executor/lowering/joint_body.h"
#include "framework/executor/lowering/loop_ops.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"

namespace skiff {
namespace {

using Names = std::vector<std::string>;

// Throws an Error unless the condition is one bool. `what` describes it.
void CheckCondition(const Op& op, const std::string& what, const TensorMeta& meta) {
  SKIFF_ENFORCE(meta.dtype == DType::kBool && meta.shape.element_count() == 1, kInvalidArgument,
                op.type, ": the condition ", what, "is ", meta.dtype, " ", meta.shape,
                ", expected one bool");
}

// What both ops have in common.
class WrittenForm : public LoopForm {
 public:
  void AddFeeds(JointBody* body) override {
    BlockLowering& outer = body->outer();
    for (const Var* var : WrittenOutside(outer.inputs().registry, body->ops().forward)) {
      written_.push_back(var->name);
      const ValueId initial = outer.TryRead(var->name);
      if (!initial) continue;
      body->AddFeed(LoopFeed::Kind::kCarried, var->name, outer.plan()[initial].meta,
                    {.value = initial});
    }
  }

  void AddFetches(JointBody* body) override {
    for (const std::string& name : written_) {
      const ValueId end = body->lowering().Current(name);
      const auto feed = body->FindFeed(body->links().forward, LoopFeed::Kind::kCarried, name);
      if (!end) continue;  // written by a branch inside that never has it
      if (feed) {
        body->AddCarried(*feed, name, end);
      } else {
        body->AddFetch(LoopFetch::Kind::kLast, name, end);
      }
    }
  }

  void AddSeeds(JointBody* body) override {
    const LoopOps& ops = body->ops();
    const Op& gradient = *ops.gradient.op;
    const Names& outer = gradient.Input(GradientSlot(ops.slots.results));
    const Names inner = InnerResultGradients(ops);
    SKIFF_ENFORCE(outer.size() == inner.size(), kInvalidArgument, gradient.type, ": has ",
                  outer.size(), " gradients of results and ", inner.size(), " names for them");
    for (size_t i = 0; i < inner.size(); ++i) {
      // Gradient ops find the elements of arrays where they are.
      if (inner[i] == kEmptyVarName || body->IsArray(inner[i])) continue;
      body->AddSeed(LoopFeed::Kind::kCarried, inner[i], body->ForwardMeta(inner[i]), outer[i]);
    }
    // What else the gradient block changes outside of itself: counters that run backwards.
    const Names results = gradient.OutputNames();
    for (const Var* var : WrittenOutside(body->outer().inputs().registry, ops.gradient)) {
      const bool is_result = std::ranges::count(results, var->name) > 0;
      const ValueId value = is_result ? ValueId() : body->lowering().TryRead(var->name);
      if (value && ops.forward.body->FindLocalVar(var->name) == nullptr) {
        rewound_.push_back(
            body->AddSeed(LoopFeed::Kind::kCarried, var->name, body->MetaOf(value), var->name));
      }
    }
  }

  void AddGradients(JointBody* body) override {
    const LoopOps& ops = body->ops();
    const Op& gradient = *ops.gradient.op;
    const Names& captured = gradient.Input(ops.slots.captured);
    const Names& outer = gradient.Output(GradientSlot(ops.slots.captured));
    for (size_t i = 0; i < std::min(captured.size(), outer.size()); ++i) {
      if (outer[i] == kEmptyVarName || body->IsArray(captured[i])) continue;
      const std::string name = GradName(captured[i]);
      const auto feed = body->FindFeed(body->links().gradient, LoopFeed::Kind::kCarried, name);
      const ValueId end = body->lowering().Current(name);
      SKIFF_ENFORCE(end, kInvalidArgument, gradient.type, ": no op of block ",
                    body->lowering().block().index(), " makes \"", name, "\", the gradient of \"",
                    captured[i], "\"");
      if (feed) {
        body->AddCarried(*feed, outer[i], end);
      } else {
        body->AddSum(outer[i], captured[i], end);
      }
    }
    AddGradientsThatChange(body);
  }

 private:
  // Adds gradients of results that nothing hands on, but that change inside.
  void AddGradientsThatChange(JointBody* body) const {
    const HalfLinks& half = body->links().gradient;
    for (size_t i = 0; i < half.feeds.size(); ++i) {
      if (half.feeds[i].kind != LoopFeed::Kind::kCarried) continue;
      const std::string name = body->NameOf(half.feeds[i]);
      const ValueId end = body->lowering().Current(name);
      const bool is_fetched =
          std::ranges::count(half.fetches, static_cast<int>(i), &JointFetch::feed) > 0;
      if (is_fetched || end == half.feeds[i].value) continue;
      const bool is_rewound = std::ranges::count(rewound_, i) > 0;
      body->AddCarried(i, is_rewound ? name : "", end);
    }
  }

  Names written_;                // by the forward half
  std::vector<size_t> rewound_;  // feeds of the gradient half
};

class WhileForm : public WrittenForm {
 public:
  void AddFeeds(JointBody* body) override {
    WrittenForm::AddFeeds(body);
    // The condition may be one that the body never writes.
    body->lowering().Read(ConditionName(*body));
  }

  // A gradient block of Fluid's finds a variable that the forward block overwrites as it was when
  // the iteration began, unless an op of the block works on it in place, such as a counter.
  void AddSeeds(JointBody* body) override {
    for (const JointFeed& feed : body->links().forward.feeds) {
      const std::string name = body->NameOf(feed);
      const bool is_carried = feed.kind == LoopFeed::Kind::kCarried;
      if (is_carried && !IsCounter(*body->ops().forward.body, name)) {
        body->lowering().SetCurrent(name, feed.value);
      }
    }
    WrittenForm::AddSeeds(body);
  }

  int64_t SlotCount() const override { return -1; }

  ValueId Condition(const JointBody& body) const override {
    const HalfLinks& forward = body.links().forward;
    auto feed = body.FindFeed(forward, LoopFeed::Kind::kCarried, ConditionName(body));
    if (!feed) feed = body.FindFeed(forward, LoopFeed::Kind::kInvariant, ConditionName(body));
    return feed ? forward.feeds[*feed].value : ValueId();
  }

  LoopRuns Runs(JointBody* body) const override {
    const Op& op = *body->ops().forward.op;
    const ValueId condition = body->links().condition;
    SKIFF_ENFORCE(condition, kUnimplemented, op.type, ": the condition \"", ConditionName(*body),
                  "\" is persistable, expected a variable of the program");
    CheckCondition(op, "", body->MetaOf(condition));
    return {.is_counted = true, .gradient_descending = true};
  }

 private:
  static const std::string& ConditionName(const JointBody& body) {
    return body.ops().forward.op->Input("Condition").front();
  }
};

class ConditionalForm : public WrittenForm {
 public:
  bool RunsAtMostOnce() const override { return true; }
  int64_t SlotCount() const override { return 1; }

  LoopRuns Runs(JointBody* body) const override {
    const Op& op = *body->ops().forward.op;
    const Names& names = op.Input("Cond");
    BlockLowering& outer = body->outer();
    const ValueId condition = outer.Read(names.front());
    if (op.Attr<bool>("is_scalar_condition", false)) {
      CheckCondition(op, StrCat("\"", names.front(), "\" "), outer.plan()[condition].meta);
      return {.condition = condition};
    }
    // The branch runs unless one of the inputs is empty.
    bool has_elements = true;
    for (const std::string& name : names) {
      has_elements = has_elements && outer.plan()[outer.Read(name)].meta.shape.element_count() > 0;
    }
    return {.iterations = has_elements ? 1 : 0};
  }
};

}  // namespace

std::unique_ptr<LoopForm> MakeWhileForm() { return std::make_unique<WhileForm>(); }

std::unique_ptr<LoopForm> MakeConditionalForm() { return std::make_unique<ConditionalForm>(); }

}  // namespace skiff
