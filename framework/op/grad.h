// Gradient rules: functions from a forward op to its gradient ops.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_def.h"

namespace skiff {

// Returns `name` + "@GRAD".
std::string GradName(std::string_view name);
// Returns what `gradient`, the name of a variable or of a slot, says that it is the gradient of:
// what precedes the last "@GRAD"; empty if there is none. So x@GRAD is of x, as are x@GRAD_<n> and
// x@GRAD@RENAME@<k>, which append_backward makes, too; x@GRAD@GRAD is of x@GRAD. Whether there is
// such a variable is another question: a name is a claim of a file. The result refers to
// `gradient`.
std::string_view ForwardName(std::string_view gradient);

class GradContext {
 public:
  // `wants_grad(x)` returns whether the gradient of input variable x is wanted. `forward` and `def`
  // must outlive the context.
  GradContext(const Op& forward, const OpDef& def,
              std::function<bool(const std::string&)> wants_grad)
      : forward_(forward), def_(def), wants_grad_(std::move(wants_grad)) {}

  const Op& forward() const { return forward_; }
  const OpDef& def() const { return def_; }
  const std::vector<std::string>& Input(std::string_view slot) const {
    return forward_.Input(slot);
  }
  const std::vector<std::string>& Output(std::string_view slot) const {
    return forward_.Output(slot);
  }
  // Returns x@GRAD for each input x of the slot, and @EMPTY@ where no gradient is wanted.
  std::vector<std::string> InputGrad(std::string_view slot) const;
  // Returns y@GRAD for each output y of the slot, even if it doesn't exist: append_backward fills
  // those with zeros.
  std::vector<std::string> OutputGrad(std::string_view slot) const;

 private:
  const Op& forward_;
  const OpDef& def_;
  std::function<bool(const std::string&)> wants_grad_;
};

// Returns the usual rule: one op of `type` with all attributes of the forward op. `inputs` lists
// slots of the forward op, inputs or outputs, and gradients of its outputs ("Out@GRAD"); slots that
// the forward op lacks are left out. `outputs` lists gradients of its inputs ("X@GRAD").
GradRule GradOp(StaticText type, std::vector<StaticText> inputs, std::vector<StaticText> outputs);

// Returns the FLOP rule of a gradient op that spends what `forward` returns on each of `outputs`
// that it computes. `forward` may use only inputs that the gradient op has, too.
FlopRule GradFlop(FlopRule forward, std::vector<StaticText> outputs);

}  // namespace skiff
