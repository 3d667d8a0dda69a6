#include "framework/builder/static_rnn.h"

#include <algorithm>
#include <utility>

#include "framework/builder/block_call.h"
#include "framework/builder/current_block.h"
#include "framework/builder/program_guard.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

// A copy, so that a state and an output that are one variable have gradients of their own.
std::string Copy(const LayerCall& call, const std::string& name) {
  Op op("assign");
  op.SetInput("X", {name});
  return call.AppendFor(std::move(op)).name();
}

}  // namespace

StaticRnn::StaticRnn(const StaticRnnOptions& options, Site site)
    : options_(options), call_(std::make_shared<LayerCall>("static_rnn", options.name, site)) {}

void StaticRnn::Body(const std::function<void()>& body) {
  call_->Enforce(phase_ == Phase::kNew, "it has a body already");
  phase_ = Phase::kInBody;
  Block* outer = &CurrentBlock();
  Block* block = BuildBlock([&] {
    body_ = &CurrentBlock();
    body();
    call_->Enforce(!inputs_.empty(),
                   "the body has no StepInput, which says how many steps there are");
    for (State& state : states_) {
      call_->Enforce(!state.after.empty(), "the memory \"", state.before,
                     "\" has no UpdateMemory in the body");
      state.after = Copy(*call_, state.after);
    }
  });
  Finish(outer, block);
  phase_ = Phase::kDone;
}

void StaticRnn::EnforceInBody(const char* what) const {
  const bool is_inside = phase_ == Phase::kInBody && &CurrentBlock() == body_;
  call_->Enforce(is_inside, what, " is called outside of Body or in a block inside it");
}

Variable StaticRnn::StepInput(const Variable& x) {
  EnforceInBody("StepInput");
  call_->CheckedName(x);
  call_->Enforce(!x.dims().empty(), "the step input \"", x.name(),
                 "\" is a scalar, expected a dim 0 that counts the steps");
  const int64_t steps = x.dims()[0];
  call_->Enforce(steps < 0 || steps_ < 0 || steps == steps_, "the step input \"", x.name(),
                 "\" has ", steps, " steps, those before have ", steps_);
  steps_ = std::max(steps_, steps);
  const bool is_known = std::ranges::find(inputs_, x.name()) != inputs_.end();
  call_->Enforce(is_known || CurrentBlock().FindLocalVar(x.name()) == nullptr, "the step input \"",
                 x.name(), "\" is a variable of the body, expected one outside");
  if (!is_known) {
    // The op gives the part the name of the whole, so it would change what earlier ops read.
    const BlockUses uses = UsesOutside(*body_);
    const bool is_used = std::ranges::count(uses.reads, x.name()) > 0 ||
                         std::ranges::count(uses.writes, x.name()) > 0;
    call_->Enforce(
        !is_used, "the step input \"", x.name(),
        "\" is used in the body before its StepInput, from where on the name means the "
        "part of the step: expected StepInput first, and Assign outside of the body for a "
        "use of the whole");
    Var part{.name = x.name()};
    part.dtype = x.dtype();
    part.dims.assign(x.dims().begin() + 1, x.dims().end());
    part.stop_gradient = x.var().stop_gradient;
    CurrentBlock().CreateVar(std::move(part));
    inputs_.push_back(x.name());
  }
  return {&CurrentBlock(), x.name()};
}

Variable StaticRnn::Memory(const Variable& initial) {
  EnforceInBody("Memory");
  const std::string name = call_->CheckedName(initial);
  const Variable before = call_->NewOutput();
  before.var().dtype = initial.dtype();
  before.var().dims = initial.dims();
  states_.push_back({.initial = name, .before = before.name(), .after = {}});
  return before;
}

void StaticRnn::UpdateMemory(const Variable& memory, const Variable& next) {
  EnforceInBody("UpdateMemory");
  const auto state = std::ranges::find(states_, memory.name(), &State::before);
  call_->Enforce(state != states_.end(), "\"", memory.name(), "\" is no memory of this layer");
  call_->Enforce(state->after.empty(), "the memory \"", memory.name(), "\" is updated twice");
  std::string after = call_->CheckedName(next);
  EnforceSame(*call_, "the next value ", next, "the memory ", memory);
  state->after = std::move(after);
}

void StaticRnn::StepOutput(const Variable& x) {
  EnforceInBody("StepOutput");
  step_outputs_.push_back(Copy(*call_, call_->CheckedName(x)));
}

const std::vector<Variable>& StaticRnn::Outputs() const {
  call_->Enforce(phase_ == Phase::kDone, "Outputs is called before Body has ended");
  return outputs_;
}

void StaticRnn::Finish(Block* outer, Block* body) {
  std::vector<std::string> initial, before, after;
  for (const State& state : states_) {
    initial.push_back(state.initial);
    before.push_back(state.before);
    after.push_back(state.after);
  }
  for (const std::string& name : step_outputs_) {
    const Var& part = *body->GetVar(name);
    Var output{.name = name};
    output.dtype = part.dtype;
    output.dims = part.dims;
    output.dims.insert(output.dims.begin(), steps_);
    outer->CreateVar(std::move(output));
    outputs_.emplace_back(outer, name);
  }
  const BlockUses uses = UsesOutside(*body);
  for (const std::string& name : uses.writes) {
    call_->Enforce(outer->GetVar(name)->persistable, "the body assigns to \"", name,
                   "\", which is outside: expected a memory");
  }
  Op op("recurrent");
  op.SetInput("inputs", inputs_).SetInput("initial_states", initial);
  op.SetInput("parameters", uses.reads);
  op.SetOutput("outputs", step_outputs_).SetOutput("step_scopes", {NewScopes(*call_)});
  op.SetAttr("sub_block", BlockIndex{body->index()}).SetAttr("has_states", !states_.empty());
  op.SetAttr("ex_states", before).SetAttr("states", after).SetAttr("reverse", options_.reverse);
  op.SetAttr("is_train", true);
  // Fluid has no default for it.
  op.SetAttr("skip_eager_deletion_vars", std::vector<std::string>());
  call_->Append(std::move(op));
}

}  // namespace skiff::layers
