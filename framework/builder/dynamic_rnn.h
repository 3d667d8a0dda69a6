// A recurrent layer on ragged variables that you write step by step.
//
//   DynamicRnn rnn;
//   rnn.Body([&] {
//     Variable x = rnn.StepInput(words);            // words [rows, width], ragged; x [n, width]
//     Variable before = rnn.Memory({hidden}, 0.0f);  // [n, hidden]
//     Variable state = layers::Tanh(layers::Fc(layers::Concat({x, before}, 1), hidden));
//     rnn.UpdateMemory(before, state);
//     rnn.StepOutput(state);
//   });
//   Variable states = rnn.Outputs()[0];             // [rows, hidden], ragged like words
//
// The sequences run side by side, the longest ones first, and step t has a row for each of the n
// sequences that are longer than t. So nothing is padded, and shorter sequences cost nothing once
// they have ended. Memories and static inputs are put into that order, too.
#pragma once

#include <cstdint>
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

class DynamicRnn {
 public:
  explicit DynamicRnn(const std::string& name = {}, Site site = Site::current());

  // Calls `body` once, to build the ops of a step. Throws an Error (kInvalidArgument) if it has
  // been called before, if there is no StepInput or if a memory has no UpdateMemory, and the Errors
  // of `body`; the layer is then not there. A run throws an Error if the sequences of two step
  // inputs have different lengths.
  void Body(const std::function<void()>& body);

  // The following throw an Error (kInvalidArgument) outside of Body, and in a block inside it. All
  // except the first StepInput throw an Error before there is a StepInput.

  // Returns the rows of the step of x, which is ragged. All step inputs of the layer have the LoD
  // of the first one.
  Variable StepInput(const Variable& x);
  // x has a row or a sequence for each sequence of the step inputs. Returns the rows or sequences
  // for the sequences that haven't ended.
  Variable StaticInput(const Variable& x);
  // Returns the rows of the memory that the step before has set (UpdateMemory), of the sequences
  // that haven't ended; in the first step `initial`, which has a row for each sequence of the
  // batch, in order.
  Variable Memory(const Variable& initial);
  // The same with [sequences, dims…] of `value` as the initial state.
  Variable Memory(const std::vector<int64_t>& dims, float value = 0.0f,
                  DType dtype = DType::kFloat32);
  // Throws an Error (kInvalidArgument) if `memory` isn't a memory of this layer, is updated twice,
  // or has another dtype or other dims than `next`.
  void UpdateMemory(const Variable& memory, const Variable& next);
  // Makes x, of the body, an output of the layer.
  void StepOutput(const Variable& x);

  // Returns the outputs, ragged like the step inputs, in the order of the StepOutput. Throws an
  // Error (kInvalidArgument) before Body has ended.
  const std::vector<Variable>& Outputs() const;

 private:
  struct State {
    std::string memory;  // in the body
    Variable array;      // its values by step
    Variable next;       // undefined until UpdateMemory
  };

  void EnforceInBody(const char* what) const;
  // Throws, too, if there is no step input yet.
  void EnforceHasSteps(const char* what) const;
  void StartSteps(const Variable& first_input);
  // Ends a step, in the body.
  void FinishStep();

  std::shared_ptr<const internal::LayerCall> call_;
  Site site_;
  enum class Phase { kNew, kInBody, kDone } phase_ = Phase::kNew;
  ir::Block* outer_ = nullptr;
  ir::Block* body_ = nullptr;  // while Body runs
  Variable first_input_;
  Variable table_;
  Variable length_;  // of the longest sequence
  Variable zero_;
  Variable step_;
  Variable condition_;
  std::vector<State> states_;
  std::vector<Variable> output_arrays_;
  std::vector<Variable> outputs_;
};

}  // namespace skiff::layers
