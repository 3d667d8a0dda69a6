// A recurrent layer that you write step by step.
//
//   StaticRnn rnn;
//   rnn.Body([&] {
//     Variable x = rnn.StepInput(xs);              // xs [time, batch, width]; x [batch, width]
//     Variable before = rnn.Memory(initial_state);
//     Variable state = layers::Tanh(layers::Fc(layers::Concat({x, before}, 1), hidden));
//     rnn.UpdateMemory(before, state);
//     rnn.StepOutput(state);
//   });
//   Variable states = rnn.Outputs()[0];            // [time, batch, hidden]
//
// All inputs are dense and have as many steps.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::internal {
class LayerCall;
}  // namespace skiff::internal

namespace skiff::layers {

struct StaticRnnOptions {
  bool reverse = false;  // from the last step to the first
  std::string name = {};
};

class StaticRnn {
 public:
  explicit StaticRnn(const StaticRnnOptions& options = {}, Site site = Site::current());

  // Calls `body` once, to build the ops of a step. Throws an Error (kInvalidArgument) if it has
  // been called before, if there is no StepInput, if a memory has no UpdateMemory, if the body
  // assigns to a variable outside that isn't in the scope, and the Errors of `body`; the layer is
  // then not there.
  void Body(const std::function<void()>& body);

  // The following throw an Error (kInvalidArgument) outside of Body, and in a block inside it.

  // Returns the part of x [time, …] of the step. In the body the name of x means this part. Throws
  // an Error (kInvalidArgument) if the body has used x before: for the whole of x in the body, copy
  // it outside (Assign).
  Variable StepInput(const Variable& x);
  // Returns the memory that the step before has set (UpdateMemory); in the first step `initial`.
  Variable Memory(const Variable& initial);
  // Throws an Error (kInvalidArgument) if `memory` isn't a memory of this layer, is updated twice,
  // or has another dtype or other dims than `next`.
  void UpdateMemory(const Variable& memory, const Variable& next);
  // Makes x, of the body, an output of the layer.
  void StepOutput(const Variable& x);

  // Returns the outputs, [time, …] each, in the order of the StepOutput. Throws an Error
  // (kInvalidArgument) before Body has ended.
  const std::vector<Variable>& Outputs() const;

 private:
  struct State {
    std::string initial;
    std::string before;
    std::string after;  // empty until UpdateMemory
  };

  void EnforceInBody(const char* what) const;
  void Finish(ir::Block* outer, ir::Block* body);

  StaticRnnOptions options_;
  std::shared_ptr<const internal::LayerCall> call_;
  enum class Phase { kNew, kInBody, kDone } phase_ = Phase::kNew;
  std::vector<std::string> inputs_;
  std::vector<State> states_;
  std::vector<std::string> step_outputs_;
  std::vector<Variable> outputs_;
  int64_t steps_ = -1;
  ir::Block* body_ = nullptr;  // while Body runs
};

}  // namespace skiff::layers
