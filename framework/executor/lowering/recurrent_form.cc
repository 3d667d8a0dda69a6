#include "framework/executor/lowering/recurrent_form.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/lowering/joint_body.h"
#include "framework/executor/lowering/loop_ops.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"
#include "framework/tensor/shape.h"

namespace skiff {
namespace {

using Names = std::vector<std::string>;

bool Contains(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Names States(const Op& op, const char* attr) { return op.Attr<Names>(attr, {}); }

void CheckNamed(const Op& op, const char* slot, const std::string& name) {
  SKIFF_ENFORCE(name != kEmptyVarName, kInvalidArgument, op.type, ": ", slot, " has ",
                kEmptyVarName, ", expected a variable");
}

void CheckStateNames(const Op& op) {
  const size_t initial = op.Input("initial_states").size();
  const size_t before = States(op, "ex_states").size();
  const size_t after = States(op, "states").size();
  SKIFF_ENFORCE(before == initial && after == initial, kInvalidArgument, op.type, ": has ", initial,
                " initial_states, ", before, " ex_states and ", after,
                " states: expected as many of each");
  for (const Names& names : {States(op, "ex_states"), States(op, "states"), op.Output("outputs")}) {
    const std::set<std::string> unique(names.begin(), names.end());
    SKIFF_ENFORCE(unique.size() == names.size(), kInvalidArgument, op.type, ": one of ",
                  Join(names, ", "), " is named twice");
  }
}

class RecurrentForm : public LoopForm {
 public:
  void AddFeeds(JointBody* body) override {
    const Op& op = *body->ops().forward.op;
    CheckWritesNothingOutside(body);
    for (const std::string& name : op.Input("inputs")) {
      CheckNamed(op, "inputs", name);
      AddPart(body, name);
    }
    SKIFF_ENFORCE(iterations_ >= 0, kInvalidArgument, op.type,
                  ": has no inputs, expected one whose dim 0 counts the iterations");
    CheckStateNames(op);
    const Names& initial = op.Input("initial_states");
    for (size_t i = 0; i < initial.size(); ++i) {
      CheckNamed(op, "initial_states", initial[i]);
      const ValueId value = body->outer().Read(initial[i]);
      body->AddFeed(LoopFeed::Kind::kCarried, States(op, "ex_states")[i],
                    body->outer().plan()[value].meta, {.value = value});
    }
  }

  void AddFetches(JointBody* body) override {
    const Op& op = *body->ops().forward.op;
    for (size_t i = 0; i < States(op, "states").size(); ++i) {
      const size_t feed = *body->FindFeed(body->links().forward, LoopFeed::Kind::kCarried,
                                          States(op, "ex_states")[i]);
      body->AddCarried(feed, "", body->lowering().Read(States(op, "states")[i]));
    }
    for (const std::string& name : op.Output("outputs")) {
      if (name != kEmptyVarName) AddParts(body, name, body->lowering().Read(name));
    }
  }

  void AddSeeds(JointBody* body) override {
    const Op& op = *body->ops().forward.op;
    const Op& gradient = *body->ops().gradient.op;
    const Names& outputs = op.Output("outputs");
    const Names& outer = gradient.Input(GradientSlot("outputs"));
    for (size_t i = 0; i < std::min(outputs.size(), outer.size()); ++i) {
      const std::string name = GradName(outputs[i]);
      const bool is_given = outer[i] != kEmptyVarName;
      body->AddSeed(is_given ? LoopFeed::Kind::kPart : LoopFeed::Kind::kCarried, name,
                    body->ForwardMeta(name), outer[i]);
    }
    for (const std::string& state : States(op, "states")) {
      const std::string name = GradName(state);
      SKIFF_ENFORCE(!Contains(outputs, state), kUnimplemented, gradient.type, ": \"", state,
                    "\" is a state and an output: expected a copy of the state as the output");
      body->AddSeed(LoopFeed::Kind::kCarried, name, body->ForwardMeta(name), kEmptyVarName);
    }
  }

  void AddGradients(JointBody* body) override {
    AddGradientsOfStates(body);
    ForEachGradient(body, "inputs", [&](const std::string& outer, const std::string&, ValueId end) {
      AddParts(body, outer, end);
    });
    ForEachGradient(body, "parameters",
                    [&](const std::string& outer, const std::string& of, ValueId end) {
                      body->AddSum(outer, of, end);
                    });
  }

  int64_t SlotCount() const override { return iterations_; }

  LoopRuns Runs(JointBody* body) const override {
    const bool is_reverse = body->ops().forward.op->Attr<bool>("reverse", false);
    return {
        .iterations = iterations_, .descending = is_reverse, .gradient_descending = !is_reverse};
  }

 private:
  // A value that an iteration leaves outside would have to be a state.
  static void CheckWritesNothingOutside(JointBody* body) {
    const BlockOp& forward = body->ops().forward;
    for (const Var* var : WrittenOutside(body->outer().inputs().registry, forward)) {
      SKIFF_ENFORCE(Contains(forward.op->Output("outputs"), var->name), kUnimplemented,
                    forward.op->type, ": the block writes \"", var->name,
                    "\", which is outside: expected a state, or a variable of the block");
    }
  }

  // Adds a feed whose parts along dim 0 enter the iterations.
  void AddPart(JointBody* body, const std::string& name) {
    const std::string& type = body->ops().forward.op->type;
    const ValueId stack = body->outer().Read(name);
    TensorMeta meta = body->outer().plan()[stack].meta;
    SKIFF_ENFORCE(meta.shape.rank() >= 1 && meta.lod == nullptr && meta.layout.is_plain(),
                  kInvalidArgument, type, ": input \"", name, "\" is ", meta.dtype, " ", meta.shape,
                  meta.lod == nullptr ? "" : " with a LoD",
                  ": expected a dense tensor whose dim 0 counts the iterations");
    SKIFF_ENFORCE(iterations_ < 0 || iterations_ == meta.shape[0], kInvalidArgument, type,
                  ": input \"", name, "\" has ", meta.shape[0], " parts, those before have ",
                  iterations_);
    iterations_ = meta.shape[0];
    const auto dims = meta.shape.dims();
    meta.shape = Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
    body->AddFeed(LoopFeed::Kind::kPart, name, meta, {.value = stack});
  }

  // Adds a fetch: `outer` becomes the tensor whose parts along dim 0 are `end` of each iteration.
  void AddParts(JointBody* body, const std::string& outer, ValueId end) {
    JointFetch& fetch = body->AddFetch(LoopFetch::Kind::kPart, outer, end);
    fetch.outer_meta.shape = StackShape(iterations_, fetch.outer_meta.shape);
  }

  static void AddGradientsOfStates(JointBody* body) {
    const Op& op = *body->ops().forward.op;
    const Names& outer = body->ops().gradient.op->Output(GradientSlot("initial_states"));
    for (size_t i = 0; i < States(op, "states").size(); ++i) {
      const ValueId end = body->lowering().Current(GradName(States(op, "ex_states")[i]));
      if (!end) continue;  // no gradient reaches this state
      const bool is_wanted = i < outer.size() && outer[i] != kEmptyVarName;
      const size_t feed = *body->FindFeed(body->links().gradient, LoopFeed::Kind::kCarried,
                                          GradName(States(op, "states")[i]));
      body->AddCarried(feed, is_wanted ? outer[i] : "", end);
    }
  }

  // Calls add(outer, of, end) for each variable `of` of a slot whose gradient is to become `outer`.
  template <typename Add>
  static void ForEachGradient(JointBody* body, const char* slot, const Add& add) {
    const Op& gradient = *body->ops().gradient.op;
    const Names& outer = gradient.Output(GradientSlot(slot));
    const Names& names = body->ops().forward.op->Input(slot);
    for (size_t i = 0; i < std::min(names.size(), outer.size()); ++i) {
      if (outer[i] == kEmptyVarName || body->IsArray(names[i])) continue;
      const ValueId end = body->lowering().Current(GradName(names[i]));
      SKIFF_ENFORCE(end, kInvalidArgument, gradient.type, ": no op of block ",
                    body->lowering().block().index(), " makes \"", GradName(names[i]), "\"");
      add(outer[i], names[i], end);
    }
  }

  int64_t iterations_ = -1;
};

}  // namespace

std::unique_ptr<LoopForm> MakeRecurrentForm() { return std::make_unique<RecurrentForm>(); }

}  // namespace skiff
