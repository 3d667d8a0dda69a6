// Gradient rules: from a forward op to the descriptors of its gradient ops.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_def.h"

namespace skiff {

// "x@GRAD"
std::string GradName(std::string_view name);

class GradContext {
 public:
  // `wants_grad(x)` tells whether the gradient of input variable x is to be computed, `has_grad(y)`
  // whether that of output variable y exists. `grad_block(b)` makes the gradient block of sub-block
  // b and returns its index.
  GradContext(const Op& forward, const OpDef& def,
              std::function<bool(const std::string&)> wants_grad,
              std::function<bool(const std::string&)> has_grad,
              std::function<int32_t(int32_t)> grad_block = {})
      : forward_(forward),
        def_(def),
        wants_grad_(std::move(wants_grad)),
        has_grad_(std::move(has_grad)),
        grad_block_(std::move(grad_block)) {}

  const Op& forward() const { return forward_; }
  const OpDef& def() const { return def_; }
  const std::vector<std::string>& Input(std::string_view slot) const {
    return forward_.Input(slot);
  }
  const std::vector<std::string>& Output(std::string_view slot) const {
    return forward_.Output(slot);
  }
  // x@GRAD of each input of the slot; @EMPTY@ where none is wanted.
  std::vector<std::string> InputGrad(std::string_view slot) const;
  // y@GRAD of each output of the slot. One that does not exist is named all the same:
  // append_backward puts zeros there.
  std::vector<std::string> OutputGrad(std::string_view slot) const;
  bool HasOutputGrad(std::string_view slot) const;
  bool WantsInputGrad(std::string_view slot) const;
  int32_t GradBlock(int32_t forward_block) const;

 private:
  const Op& forward_;
  const OpDef& def_;
  std::function<bool(const std::string&)> wants_grad_;
  std::function<bool(const std::string&)> has_grad_;
  std::function<int32_t(int32_t)> grad_block_;
};

// The usual rule: one op of `type` with all attributes of the forward op. `inputs` lists slots of
// the forward op (inputs or outputs; absent ones are left out) and gradients of outputs
// ("Out@GRAD"); `outputs` gradients of inputs ("X@GRAD").
GradRule GradOp(std::string type, std::vector<std::string> inputs,
                std::vector<std::string> outputs);

// The FLOP of a gradient op where each of `outputs` that is computed takes what `forward` says,
// which must need nothing but inputs that the gradient op has too.
FlopRule GradFlop(FlopRule forward, std::vector<std::string> outputs);

}  // namespace skiff
