// What Skiff knows about an operator: slots, attributes, shape rule, gradient rule, and the facts
// that analyses and passes ask for. A pass learns the properties of an op here, never from its
// name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/attribute.h"
#include "framework/ir/program.h"

namespace skiff {

class OpContext;
class GradContext;

struct SlotDef {
  std::string name;
  std::string doc;
  bool duplicable = false;    // takes any number of variables
  bool dispensable = false;   // may be absent
  bool intermediate = false;  // an output that only the gradient reads
  bool shape_only = false;    // an input whose shape is read, never its data
  bool checks_data = false;   // an input whose data a kernel may refuse when it runs
  // Takes (gives) selected rows, too. A kernel for them says so: KernelDef::selected_rows.
  bool selected_rows = false;
};

struct AttrDef {
  std::string name;
  AttrType type = AttrType::kInt;
  std::optional<Attribute> default_value;  // none: the attribute must be set
  std::string doc;
  // Whether the op takes the value; `expected` says for messages what it takes. Empty: any.
  std::function<bool(const Attribute&)> accepts;
  std::string expected;
  ErrorCode refusal = ErrorCode::kInvalidArgument;  // of what it doesn't take
};

// A string out of `choices`.
AttrDef ChoiceAttr(std::string name, std::string default_value, std::vector<std::string> choices,
                   std::string doc);

// How the op treats a channel-blocked layout.
enum class LayoutRule {
  kPlain,           // every tensor is plain
  kSame,            // any layout, the same for all tensors of `layout_slots`, which have one shape
  kChannelBlocked,  // the tensors of `layout_slots` may each be plain or blocked
};

using ShapeRule = std::function<void(OpContext&)>;
using GradRule = std::function<std::vector<Op>(const GradContext&)>;
using FlopRule = std::function<double(const OpContext&)>;

// A bool attribute of update ops: whether the tensors of each of its lists shall lie one behind the
// other. The op computes the same either way.
inline constexpr const char* kIsFlatAttr = "is_flat";

// How an op updates parameters, or what is kept for each of them.
struct UpdateRule {
  // A scalar of each parameter that is multiplied by `factor`, a float attribute, in each step: by
  // the op where `output` is connected, else by the program.
  struct Power {
    std::string input;
    std::string output;
    std::string factor;
  };

  // Input slots with one argument a parameter, the parameters first, or what becomes one. The op
  // takes the arguments of any number of parameters: argument i of each of these slots, and of the
  // outputs that may lie on them (in_place), is parameter i's. What it does to one depends on no
  // other.
  std::vector<std::string> lists;
  // Those of them whose arguments have one element; of the others argument i has as many as the
  // parameter.
  std::vector<std::string> scalars;
  // Attributes that are lists: of one entry for all, or of one a parameter.
  std::vector<std::string> list_attrs;
  // The op that ops of this type are merged into: one with the same slots, whose list_attrs may be
  // plain attributes of this one. Empty: this type itself.
  std::string merged_as;
  std::vector<Power> powers;
};

struct OpDef {
  std::string type;
  // The formula and its source: what docs and error messages show.
  std::string doc;
  std::vector<SlotDef> inputs;
  std::vector<SlotDef> outputs;
  std::vector<AttrDef> attrs;
  // Sets shape and dtype of every output present. Must accept dims of -1.
  ShapeRule infer;
  // The gradient ops. Empty: the op has no gradient, and no_gradient_reason says why.
  GradRule grad;
  std::string no_gradient_reason;
  // The slot (input or output) whose dtype chooses the kernel; empty: the first input present, or
  // the first output of an op without inputs.
  std::string kernel_dtype_slot;

  // Facts.
  // {input, output} that may share storage; of slots with several arguments, those of one index.
  std::vector<std::pair<std::string, std::string>> in_place;
  // {input, output} in which the op moves statistics on, a running mean, say. Where it changes
  // them, no other output depends on the input.
  std::vector<std::pair<std::string, std::string>> running_state;
  // {input, output} where the output is the input's elements, in their order, in another shape.
  // Such a pair is in `in_place` too.
  std::vector<std::pair<std::string, std::string>> views;
  // FLOP (a multiply-add is 2) of one run by the textbook formula, every dim known: of products of
  // matrices and convolutions, whose time is that of their arithmetic. Element-wise work isn't
  // counted, nor what a kernel saves (Winograd). Empty: all others, which move bytes.
  FlopRule flop;
  // Another op that computes outputs of this one once more, with the same bits but for less, from
  // this one's variables, inputs and outputs, in slots of the same names. Empty: none.
  std::string replayed_by;
  // Of an op that updates parameters or their averages; none: it doesn't.
  std::optional<UpdateRule> update;
  LayoutRule layout_rule = LayoutRule::kPlain;
  std::vector<std::string> layout_slots;
  bool zero_preserving = false;  // zeros in (all inputs), zeros out: safe on padded tensors
  // Where all outputs have one shape, element i depends on the inputs at i only. An input of fewer
  // elements is one number, or is repeated: it stands at the attribute `axis`, if the op has one
  // and it isn't -1, else at the last dims. So the op may be run on a slice, in a shape that keeps
  // the rank and the dims along which such inputs aren't repeated.
  bool elementwise = false;
  bool random = false;                // draws numbers
  bool has_side_effect = false;       // must run even if nobody reads its outputs
  bool data_dependent_shape = false;  // the output shape depends on input data
  // Of an op with inputs that it checks: another op, after which this one refuses nothing if it has
  // that one's attributes, and its variables in every slot of the same name (input or output). So
  // for a gradient op the forward op; empty: none.
  std::string data_checked_by;

  // nullptr if there is none.
  const SlotDef* FindInput(std::string_view slot) const;
  const SlotDef* FindOutput(std::string_view slot) const;
  const AttrDef* FindAttr(std::string_view name) const;
};

// Checks an op against its definition: unknown or missing slots, several variables in a slot that
// takes one, attributes of the wrong type, missing or out of range. Attributes that the definition
// doesn't list (op_role, engine hints, those of other versions) are legal and ignored. Error naming
// the op's type and what is wrong.
void CheckOp(const OpDef& def, const Op& op);

// The attribute as kernels see it: the op's, or the definition's default; nullptr if there is
// neither.
const Attribute* EffectiveAttr(const Op& op, const AttrDef& attr);

// "softmax (block 0, op #17, models/ernie/ernie.cc:88)": where an op stands, for messages.
std::string DescribeOp(const Op& op, int32_t block, size_t position);

}  // namespace skiff
