// In a program the layer is what Fluid's DynamicRNN is: a while over arrays of time steps.
#include "framework/builder/dynamic_rnn.h"

#include <algorithm>
#include <utility>

#include "framework/builder/block_call.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/current_block.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"

namespace skiff::layers {

DynamicRnn::DynamicRnn(const std::string& name, Site site)
    : call_(std::make_shared<LayerCall>("dynamic_rnn", name, site)), site_(site) {}

void DynamicRnn::Body(const std::function<void()>& body) {
  call_->Enforce(phase_ == Phase::kNew, "it has a body already");
  phase_ = Phase::kInBody;
  outer_ = &CurrentBlock();
  const size_t first_op = outer_->ops().size();
  const Block* block = nullptr;
  try {
    block = BuildBlock([&] {
      body_ = &CurrentBlock();
      body();
      call_->Enforce(table_.defined(), "the body has no StepInput");
      FinishStep();
    });
  } catch (...) {
    outer_->RemoveOps(first_op, outer_->ops().size());
    phase_ = Phase::kNew;
    table_ = Variable();
    states_.clear();
    output_arrays_.clear();
    throw;
  }
  AppendWhile(*call_, condition_, *block);
  for (const Variable& array : output_arrays_) {
    outputs_.push_back(ArrayToLodTensor(array, table_, site_));
  }
  phase_ = Phase::kDone;
}

void DynamicRnn::EnforceInBody(const char* what) const {
  const bool is_inside = phase_ == Phase::kInBody && &CurrentBlock() == body_;
  call_->Enforce(is_inside, what, " is called outside of Body or in a block inside it");
}

void DynamicRnn::EnforceHasSteps(const char* what) const {
  EnforceInBody(what);
  call_->Enforce(table_.defined(), what,
                 " comes before the first StepInput, which says how many "
                 "steps there are");
}

void DynamicRnn::StartSteps(const Variable& first_input) {
  first_input_ = first_input;
  table_ = LodRankTable(first_input, site_);
  length_ = MaxSequenceLength(table_, site_);
  zero_ = FillConstant({1}, DType::kInt64, 0, site_);
  step_ = FillConstant({1}, DType::kInt64, 0, site_);
  condition_ = LessThan(step_, length_, site_);
}

Variable DynamicRnn::StepInput(const Variable& x) {
  EnforceInBody("StepInput");
  call_->CheckedName(x);
  call_->Enforce(x.var().lod_level > 0, "the step input \"", x.name(),
                 "\" has no LoD, expected a ragged variable");
  Variable steps;
  {
    const BlockGuard guard(outer_);
    if (!table_.defined()) StartSteps(x);
    steps = LodTensorToArray(x, table_, site_);
  }
  return ArrayRead(steps, step_, site_);
}

Variable DynamicRnn::StaticInput(const Variable& x) {
  EnforceHasSteps("StaticInput");
  call_->CheckedName(x);
  Variable ranked;
  {
    const BlockGuard guard(outer_);
    ranked = ReorderByRank(x, table_, site_);
  }
  return ShrinkByRank(ranked, table_, step_, site_);
}

Variable DynamicRnn::Memory(const Variable& initial) {
  EnforceHasSteps("Memory");
  call_->CheckedName(initial);
  State state;
  {
    const BlockGuard guard(outer_);
    const Variable ranked = ReorderByRank(initial, table_, site_);
    state.array = CreateArray(initial.dtype(), site_);
    ArrayWrite(ranked, zero_, state.array, site_);
  }
  const Variable before = ArrayRead(state.array, step_, site_);
  const Variable memory = ShrinkByRank(before, table_, step_, site_);
  state.memory = memory.name();
  states_.push_back(std::move(state));
  return memory;
}

Variable DynamicRnn::Memory(const std::vector<int64_t>& dims, float value, DType dtype) {
  EnforceHasSteps("Memory");
  Variable initial;
  {
    const BlockGuard guard(outer_);
    std::vector<int64_t> shape = dims;
    shape.insert(shape.begin(), -1);
    initial = FillConstantBatchSizeLike(first_input_, shape, dtype, value, {}, site_);
  }
  return Memory(initial);
}

void DynamicRnn::UpdateMemory(const Variable& memory, const Variable& next) {
  EnforceInBody("UpdateMemory");
  const auto state = std::ranges::find(states_, memory.name(), &State::memory);
  call_->Enforce(state != states_.end(), "\"", memory.name(), "\" is no memory of this layer");
  call_->Enforce(!state->next.defined(), "the memory \"", memory.name(), "\" is updated twice");
  call_->CheckedName(next);
  EnforceSame(*call_, "the next value ", next, "the memory ", memory);
  state->next = next;
}

void DynamicRnn::StepOutput(const Variable& x) {
  EnforceHasSteps("StepOutput");
  call_->CheckedName(x);
  Variable array;
  {
    const BlockGuard guard(outer_);
    array = CreateArray(x.dtype(), site_);
  }
  ArrayWrite(x, step_, array, site_);
  output_arrays_.push_back(array);
}

void DynamicRnn::FinishStep() {
  Increment(step_, 1.0f, site_);
  for (const State& state : states_) {
    call_->Enforce(state.next.defined(), "the memory \"", state.memory,
                   "\" has no UpdateMemory in the body");
    ArrayWrite(state.next, step_, state.array, site_);
  }
  AssignTo(LessThan(step_, length_, site_), condition_, site_);
}

const std::vector<Variable>& DynamicRnn::Outputs() const {
  call_->Enforce(phase_ == Phase::kDone, "Outputs is called before Body has ended");
  return outputs_;
}

}  // namespace skiff::layers
