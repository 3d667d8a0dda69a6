// The definition of an operator: slots, attributes, shape rule, gradient rule, and the facts that
// analyses and passes ask for. Passes learn the properties of an op here, never from its name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/static_text.h"
#include "framework/ir/attribute.h"
#include "framework/ir/program.h"

namespace skiff {

class OpContext;
class GradContext;
struct BlockRule;

struct SlotDef {
  StaticText name;
  StaticText doc;
  bool duplicable = false;    // takes any number of variables
  bool dispensable = false;   // may be absent
  bool intermediate = false;  // an output that only the gradient reads
  bool shape_only = false;    // an input whose shape is read, never its data
  bool checks_data = false;   // an input whose data a kernel may reject during a run
  // Whether the slot takes (or gives) selected rows besides dense tensors. The kernels for them set
  // KernelDef::selected_rows.
  bool selected_rows = false;
  // Whether the slot takes (or gives) arrays of tensors, and nothing else.
  bool array = false;
  // Whether it is in host memory for kernels on a device, too: an input that tells the host what to
  // do, such as an index. The kernel reads such an input when the kernel issues its work.
  bool on_host = false;
  // The attribute that the input gives if it is connected (GivesAttribute): all elements in order
  // or, of a duplicable slot, the element of each argument. Of several such slots, the first one
  // that is connected counts. A plan is made for these numbers, and no kernel reads the input:
  // shape rules and kernel factories find the numbers in the attribute (OpContext::Knows). Empty:
  // none.
  StaticText attribute;
  // Of such an input: whether only shape rules need the numbers. The numbers may then differ
  // between the runs of a plan.
  bool for_shape = false;
  // Whether the slot stays float32 where the op computes in half (Precision): statistics, states
  // that are updated by small steps, what scales a norm.
  bool keeps_float32 = false;
};

// Returns the definition of an input that gives the attribute.
SlotDef AttributeSlot(StaticText name, StaticText attribute, bool for_shape = false);
// The same for a slot that takes one argument for each number.
SlotDef AttributeListSlot(StaticText name, StaticText attribute, bool for_shape = false);

struct AttrDef {
  StaticText name;
  AttrType type = AttrType::kInt;
  std::optional<Attribute> default_value;  // none: the attribute must be set
  StaticText doc;
  // Returns whether the op accepts the value; empty: it accepts any. `expected` describes accepted
  // values in messages.
  std::function<bool(const Attribute&)> accepts;
  StaticText expected;
  ErrorCode refusal = ErrorCode::kInvalidArgument;  // thrown for other values
  // Whether the value is -1 or the dtype of the op's floats. Shape rules, which see float32 in
  // place of half, needn't check half: InferOutputs does.
  bool names_dtype = false;
};

// Returns the definition of a string attribute whose values are `choices`.
AttrDef ChoiceAttr(StaticText name, StaticText default_value, std::vector<StaticText> choices,
                   StaticText doc);

// In what precision an op computes in a program that is rewritten to *half*, which is float16 or
// bfloat16; framework/precision/precision_choice.h has the whole rules. Whatever the rule, sums and
// formulas are computed in float32 or wider, and results are rounded once.
enum class Precision {
  kHigh,    // float32: half inputs are widened before the op
  kLow,     // half: float32 inputs are rounded before the op
  kFollow,  // the dtype of the largest float inputs
  kNone,    // the dtypes are the user's: the op has no floats, or the shape rule gives the dtypes
};

// How an op treats channel-blocked layouts.
enum class LayoutRule {
  kPlain,           // every tensor is plain
  kSame,            // all tensors of `layout_slots`, of one shape, have the same layout
  kChannelBlocked,  // the tensors of `layout_slots` may each be plain or blocked
};

using ShapeRule = std::function<void(OpContext&)>;
using GradRule = std::function<std::vector<Op>(const GradContext&)>;
using FlopRule = std::function<double(const OpContext&)>;

// A bool attribute of update ops: whether the tensors of each of its lists are to be contiguous.
// The results are the same either way.
inline constexpr const char* kIsFlatAttr = "is_flat";

// How an op updates parameters, or a state kept for each of them.
struct UpdateRule {
  // A scalar per parameter that is multiplied by `factor`, a float attribute, in each step: by the
  // op if `output` is connected, else by the program.
  struct Power {
    StaticText input;
    StaticText output;
    StaticText factor;
  };

  // Input slots with one argument per parameter; the first slot holds the parameters, or inputs
  // that become parameters. The op takes any number of parameters: argument i of each of these
  // slots, and of the outputs that may share their storage (in_place), belongs to parameter i. What
  // the op does to one parameter depends on no other.
  std::vector<StaticText> lists;
  // The slots of `lists` whose arguments have a single element. In the others argument i has as
  // many elements as parameter i.
  std::vector<StaticText> scalars;
  // List attributes with one entry for all parameters or one entry per parameter.
  std::vector<StaticText> list_attrs;
  // The type that ops of this type are merged into. It has the same slots, and lists in list_attrs
  // what may be plain attributes here. Empty: this type itself.
  StaticText merged_as;
  std::vector<Power> powers;
};

// How an op adds up the gradients of several runs, which make a round.
struct AccumulationRule {
  StaticText gradient;  // input slots
  StaticText count;     // int64 [1]: the gradients of the round so far, with this run's
  StaticText steps;     // an int64 attribute: the runs of a round
  // The output slot with the sum of the round, whole once count >= steps.
  StaticText sum;
};

// What an op does row by row, a row being an index of dim 0. It reads the inputs that aren't listed
// here whole for each row.
struct RowRule {
  std::vector<StaticText> inputs;   // all of the same rows
  std::vector<StaticText> outputs;  // row i depends on row i of `inputs` alone
  std::vector<StaticText> sums;     // outputs that add up a term for each row, in any order
  // Another op that computes `sums` alone. The other op takes variables of this op, inputs and
  // outputs, in slots of the same names, and has its own RowRule. Empty: this op, without the other
  // outputs.
  StaticText sums_by;
  // Returns whether the rule holds for the op with these shapes and attributes. Empty: always.
  std::function<bool(const OpContext&)> applies;
};

// An op whose output is a copy of an element of an array.
struct ElementRule {
  StaticText array;  // the slots
  StaticText index;
  // Returns whether the op does only that. Empty: always.
  std::function<bool(const Op&)> applies;
};

struct OpDef {
  StaticText type;
  // The formula and its source, for documentation and messages.
  StaticText doc;
  std::vector<SlotDef> inputs;
  std::vector<SlotDef> outputs;
  std::vector<AttrDef> attrs;
  // Sets shape and dtype of every output present. Must accept dims of -1.
  ShapeRule infer;
  // Returns the gradient ops. Empty: the op has no gradient; no_gradient_reason says why.
  GradRule grad;
  StaticText no_gradient_reason;
  // The slot, input or output, whose dtype selects the kernel. Empty: the first input present, or
  // the first output of an op without inputs.
  StaticText kernel_dtype_slot;

  // Facts. Pairs {input, output} that may share storage. For slots with several arguments this
  // means arguments of equal index.
  std::vector<std::pair<StaticText, StaticText>> in_place;
  // Whether an output may have more rows in a run than the input whose storage it takes, though
  // both have room for as many. The pass memory_reuse doesn't give such an output the storage of a
  // value that the forward half of a loop hands over: the slots of these values have exactly their
  // rows.
  bool adds_rows_in_place = false;
  // Pairs {input, output} in which the op updates statistics such as a running mean. When it does,
  // no other output depends on the input.
  std::vector<std::pair<StaticText, StaticText>> running_state;
  // For such an op: dispensable float64 outputs, one for each pair, that take the moments of the
  // batch. With momentum m, a float attribute, a statistic s becomes m · s + (1 - m) · moment.
  // Where the moments are outputs, the statistics needn't be, and another op may update them.
  std::vector<StaticText> batch_moments;
  StaticText running_momentum;
  // Pairs {input, output} whose output is the input's elements, all or the first of them, in order,
  // in another shape. They are in `in_place`, too.
  std::vector<std::pair<StaticText, StaticText>> views;
  // Returns the FLOP of one run by the textbook formula (a multiply-add counts 2); every dim is
  // known. Set for matrix products and convolutions, whose time is spent on arithmetic.
  // Element-wise work isn't counted, nor are savings by a kernel such as Winograd. Empty for all
  // other ops, whose time is spent on moving bytes.
  FlopRule flop;
  // Another op that recomputes some outputs of this op with the same bits and less work. It takes
  // variables of this op, inputs and outputs, in slots of the same names. Empty: none.
  StaticText replayed_by;
  // Set if the op treats each row by itself, so that a loop may run the op on the rows of many
  // iterations.
  std::optional<RowRule> rows;
  std::optional<ElementRule> element;
  // Returns the number that the op adds to its only input. Empty: it does something else.
  std::function<double(const Op&)> counts_by;
  // Set if the op updates parameters or their averages.
  std::optional<UpdateRule> update;
  std::optional<AccumulationRule> accumulation;
  // Set if the op runs a block (loops and branches): how values enter and leave it.
  std::shared_ptr<const BlockRule> block;
  // Unset: nobody has decided, which counts as kHigh. An op whose precision isn't kNone takes half
  // wherever it takes float32, and needs neither a shape rule nor a kernel for that
  // (half_arguments.h).
  std::optional<Precision> precision;
  LayoutRule layout_rule = LayoutRule::kPlain;
  std::vector<StaticText> layout_slots;
  bool zero_preserving = false;  // all inputs 0 give outputs 0: safe on padded tensors
  // Whether, if all outputs have one shape, element i of each depends only on the inputs at i. An
  // input of fewer elements is one number or is repeated: the dims are those at the attribute
  // `axis`, if the op has this attribute and the value isn't -1, else the last dims. So the op may
  // run on a slice whose shape keeps the rank and the dims along which such inputs aren't repeated.
  bool elementwise = false;
  bool random = false;           // draws numbers
  bool has_side_effect = false;  // must run even if its outputs aren't read
  // Whether the op exchanges data with other ranks (KernelContext::communicator). The op runs even
  // if its outputs aren't read, and just once in each run of its block. Collective ops keep their
  // order, so all ranks run them in the same order. Other instructions may move past a collective
  // op.
  bool collective = false;
  // Of a collective op: outputs that differ between ranks. They are the rank's part of a whole, or
  // the rank computes them from data of its own, with what the ranks have told each other.
  std::vector<StaticText> own_outputs;
  // Whether the op works on the host, whatever place the program has: it prints, or the outputs are
  // for the host.
  bool is_on_host = false;
  bool data_dependent_shape = false;  // the output shape depends on input data
  // Returns whether only a run tells dim 0 and the LoD of the outputs, which lie within the shape
  // that the rule gives: the kernel sets them in each run (Tensor::SetRows, ShareLoD). Empty: no.
  std::function<bool(const Op&)> sets_rows;
  // For an op with inputs marked checks_data: another op after which this op rejects nothing,
  // provided that both have the same attributes, and the same variables in slots of the same name,
  // input or output. For a gradient op that is the forward op. Empty: none.
  StaticText data_checked_by;

  // Return nullptr if there is none.
  const SlotDef* FindInput(std::string_view slot) const;
  const SlotDef* FindOutput(std::string_view slot) const;
  const AttrDef* FindAttr(std::string_view name) const;
};

// Returns whether `name`, of a slot or an attribute, is one of `names`.
bool IsOneOf(std::string_view name, const std::vector<StaticText>& names);

// Returns whether the slot gives an attribute (SlotDef::attribute) and is connected in the op: it
// has an argument other than @EMPTY@.
bool GivesAttribute(const Op& op, const SlotDef& slot);

// Checks an op against its definition. Throws Error, starting with the op's type, for an unknown or
// missing slot, for several variables in a slot for a single one, and for an attribute that is
// missing, of the wrong type, or not accepted. An attribute that the definition doesn't list
// (op_role, engine hints, attributes of other versions) is legal and ignored, unless an inference
// pass of Fluid left it to say that the op computes something else (kUnimplemented).
void CheckOp(const OpDef& def, const Op& op);

// Returns the attribute that kernels see: the op's own, else the definition's default, else
// nullptr.
const Attribute* EffectiveAttr(const Op& op, const AttrDef& attr);

// Returns where an op is, for messages: "softmax (block 0, op #17, models/ernie/ernie.cc:88)".
std::string DescribeOp(const Op& op, int32_t block, size_t position);

}  // namespace skiff
