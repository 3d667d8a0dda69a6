// Gradient rules: functions from a forward op to its gradient ops.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_def.h"

namespace skiff {

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

// An argument that a gradient op reads.
struct GradientRead {
  // An input or output of the forward op, or the gradient of an output ("Out@GRAD").
  StaticText slot;
  bool shape_only = false;   // as SlotDef::shape_only
  bool is_optional = false;  // dispensable, whatever the slot of the forward op is
  bool of_any_rank = false;  // one element may have any rank
  bool checks_data = false;  // as SlotDef::checks_data, whatever the slot of the forward op is

  template <size_t kSize>
  constexpr GradientRead(const char (&literal)[kSize]) : slot(literal) {}
  constexpr GradientRead(StaticText slot, bool shape_only) : slot(slot), shape_only(shape_only) {}
};
// Returns a read of `slot` for its shape alone: GradientOf(&def, {ForShape("X"), "Out@GRAD"}, …).
constexpr GradientRead ForShape(StaticText slot) { return {slot, true}; }
// Returns `read`, of the gradient of an output, so that the derived shape rule lets one element
// have any rank: Fluid's scalars were [1] before they were [].
constexpr GradientRead OneOfAnyRank(GradientRead read) {
  read.of_any_rank = true;
  return read;
}
// Returns `read`, marked as data that the gradient op may reject.
constexpr GradientRead Checked(GradientRead read) {
  read.checks_data = true;
  return read;
}
// Returns `read` as one that the gradient op may lack.
constexpr GradientRead Optional(GradientRead read) {
  read.is_optional = true;
  return read;
}

// Gives `forward` its usual gradient rule (GradOp), and returns the definition of the gradient op,
// "<type>_grad", which reads `reads` and writes `writes`, the gradients of inputs ("X@GRAD"). It
// has
// - the attributes and the precision of the forward op;
// - the slots as the forward op has them: with as many arguments, as dispensable, of the same kind.
//   But an output of the forward op that the gradient op reads is dispensable only if Optional. The
//   same holds for the gradient of an output if the op reads no other gradient. Of several
//   gradients that it writes each is dispensable;
// - the kernel for the dtype of the first gradient that it reads;
// - data_checked_by, if a slot that it reads checks_data;
// - if it reads all inputs of the forward op, a shape rule: a gradient is like its input, and
//   outputs and their gradients are as the rule of the forward op says. A definition that reads
//   fewer has a rule of its own;
// - a reason why it has no gradient.
// The caller sets `doc` and the facts, and may overwrite the rest. Call it when type, slots,
// attributes, precision and shape rule of `forward` are set: what is set later doesn't reach the
// gradient op. Throws Error (kInvalidArgument) for a slot that the forward op hasn't.
OpDef GradientOf(OpDef* forward, std::vector<GradientRead> reads, std::vector<StaticText> writes);

// Returns the FLOP rule of a gradient op: what `forward` returns, once for each of `outputs` that
// the gradient op computes. `forward` may use only inputs that the gradient op has, too.
FlopRule GradFlop(FlopRule forward, std::vector<StaticText> outputs);

}  // namespace skiff
