#include "framework/op/op_def.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text.h"

namespace skiff {
namespace {

template <typename Defs>
auto FindByName(const Defs& defs, std::string_view name) -> decltype(defs.data()) {
  const auto it =
      std::find_if(defs.begin(), defs.end(), [&](const auto& d) { return d.name == name; });
  return it == defs.end() ? nullptr : &*it;
}

void CheckSlots(const Op& op, const Slots& slots, const std::vector<SlotDef>& defs,
                std::string_view kind) {
  for (const SlotArguments& slot : slots) {
    const SlotDef* def = FindByName(defs, slot.slot);
    if (def == nullptr && slot.arguments.empty()) continue;
    SKIFF_ENFORCE(def != nullptr, kInvalidArgument, op.type, ": there is no ", kind, " slot \"",
                  slot.slot, "\"");
    SKIFF_ENFORCE(def->duplicable || slot.arguments.size() <= 1, kInvalidArgument, op.type, ": ",
                  kind, " slot \"", slot.slot, "\" takes one variable, found ",
                  slot.arguments.size());
  }
}

bool IsGivenByInput(const Op& op, const OpDef& def, std::string_view attribute) {
  return std::ranges::any_of(def.inputs, [&](const SlotDef& slot) {
    return slot.attribute == attribute && GivesAttribute(op, slot);
  });
}

void CheckRequired(const Op& op, const OpDef& def) {
  for (const SlotDef& slot : def.inputs) {
    if (slot.dispensable) continue;
    const std::vector<std::string>& arguments = op.Input(slot.name);
    SKIFF_ENFORCE(!arguments.empty(), kInvalidArgument, op.type, ": input slot \"", slot.name,
                  "\" is missing");
    SKIFF_ENFORCE(std::find(arguments.begin(), arguments.end(), kEmptyVarName) == arguments.end(),
                  kInvalidArgument, op.type, ": input slot \"", slot.name, "\" holds ",
                  kEmptyVarName, ", expected a variable");
  }
  for (const SlotDef& slot : def.outputs) {
    if (slot.dispensable) continue;
    const std::vector<std::string>& arguments = op.Output(slot.name);
    SKIFF_ENFORCE(!arguments.empty(), kInvalidArgument, op.type, ": output slot \"", slot.name,
                  "\" is missing");
    // The slot holds several gradients, of which some may be unwanted.
    if (slot.duplicable) continue;
    SKIFF_ENFORCE(arguments[0] != kEmptyVarName, kInvalidArgument, op.type, ": output slot \"",
                  slot.name, "\" holds ", kEmptyVarName, ", expected a variable");
  }
  // Output slots may be missing, since a gradient op may compute only some of its outputs and Fluid
  // omits intermediates. But an op that writes nothing at all is a mistake.
  const bool some_output = op.outputs.empty() ? def.outputs.empty() : true;
  SKIFF_ENFORCE(some_output, kInvalidArgument, op.type, ": no output slot is set");
}

// Fluid writes the same attribute as int or long, depending on its version.
AttrType Widened(AttrType type) {
  if (type == AttrType::kInt) return AttrType::kLong;
  return type == AttrType::kInts ? AttrType::kLongs : type;
}

// Returns the value in the type that the definition declares: an int is widened to a long, and a
// long that fits is narrowed to an int.
Attribute InTypeOf(const Attribute& value, const AttrDef& attr) {
  if (TypeOf(value) == attr.type) return value;
  const auto narrow = [&](int64_t wide) {
    SKIFF_ENFORCE(wide >= INT32_MIN && wide <= INT32_MAX, kOutOfRange, "attribute \"", attr.name,
                  "\" = ", wide, " is outside 32 bits");
    return static_cast<int32_t>(wide);
  };
  if (const auto* v = std::get_if<int32_t>(&value)) return int64_t{*v};
  if (const auto* v = std::get_if<int64_t>(&value)) return narrow(*v);
  if (const auto* v = std::get_if<std::vector<int32_t>>(&value)) {
    return std::vector<int64_t>(v->begin(), v->end());
  }
  std::vector<int32_t> narrowed;
  for (int64_t v : std::get<std::vector<int64_t>>(value)) narrowed.push_back(narrow(v));
  return narrowed;
}

// Returns what a message adds about a number of another type, which may be what is wrong with it.
std::string NumberText(const Attribute& value) {
  const AttrType type = TypeOf(value);
  const bool is_number = type == AttrType::kInt || type == AttrType::kLong ||
                         type == AttrType::kFloat || type == AttrType::kDouble;
  return is_number ? StrCat("; found ", PrintAttribute(value)) : std::string();
}

// Attributes that Fluid's inference passes leave on an op that they have fused with its neighbours
// or turned to int8. Each has the value at which the op still does just what its type says.
const AttributeMap& MarksOfFusion() {
  const std::string no_activation;
  const std::vector<int32_t> nothing;
  // Never destroyed: other threads may still check ops when static objects die.
  static const auto& marks = *new AttributeMap{
      {"fuse_activation", no_activation},
      {"fuse_brelu", false},
      {"fuse_relu", false},
      {"fuse_relu_before_depthwise_conv", false},
      {"fuse_residual_connection", false},
      {"fuse_with_relu", false},
      {"fused_output_scale", 1.0f},
      {"fused_reshape2_shape", nothing},
      {"fused_reshape_Out", nothing},
      {"fused_reshape_X", nothing},
      {"fused_reshape_Y", nothing},
      {"fused_squeeze2_axes", nothing},
      {"fused_transpose_Out", nothing},
      {"fused_transpose_X", nothing},
      {"fused_transpose_Y", nothing},
      {"fused_unsqueeze2_axes", nothing},
      {"use_quantizer", false},
      {"Scale_in", 1.0f},
      {"Scale_in_eltwise", 1.0f},
      {"Scale_out", 1.0f},
      {"Scale_weights", std::vector<float>{1.0f}},
      {"Scale_x", 1.0f},
      {"Scale_y", 1.0f},
  };
  return marks;
}

// Throws Error for an attribute that, if ignored, would make the op compute something else.
void CheckUnknownAttribute(const Op& op, const std::string& name, const Attribute& value) {
  const auto mark = MarksOfFusion().find(name);
  if (mark == MarksOfFusion().end()) return;
  // Compares as the type of the mark, since Fluid writes ints and longs alike.
  const AttrDef as_neutral{.name = name, .type = TypeOf(mark->second)};
  const bool is_neutral = Widened(TypeOf(value)) == Widened(as_neutral.type) &&
                          SameAttribute(InTypeOf(value, as_neutral), mark->second);
  SKIFF_ENFORCE(is_neutral, kUnimplemented, op.type, ": attribute \"", name,
                "\" = ", PrintAttribute(value), ", expected ", PrintAttribute(mark->second),
                ": an inference pass has fused other ops into this one; take the program from "
                "before it");
}

}  // namespace

SlotDef AttributeSlot(StaticText name, StaticText attribute, bool for_shape) {
  return {.name = name,
          .doc = StrCat("`", attribute, "`, if connected; known when a plan is made."),
          .dispensable = true,
          .attribute = attribute,
          .for_shape = for_shape};
}

SlotDef AttributeListSlot(StaticText name, StaticText attribute, bool for_shape) {
  SlotDef slot = AttributeSlot(name, attribute, for_shape);
  slot.doc = StrCat("`", attribute, "`, if connected, a number each; known when a plan is made.");
  slot.duplicable = true;
  return slot;
}

AttrDef ChoiceAttr(StaticText name, StaticText default_value, std::vector<StaticText> choices,
                   StaticText doc) {
  std::string expected;
  for (size_t i = 0; i < choices.size(); ++i) {
    const char* separator = i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ";
    expected += StrCat(separator, PrintAttribute(std::string(choices[i])));
  }
  return {.name = name,
          .type = AttrType::kString,
          .default_value = std::string(default_value),
          .doc = doc,
          .accepts =
              [choices = std::move(choices)](const Attribute& value) {
                return std::ranges::count(choices, std::get<std::string>(value)) > 0;
              },
          .expected = expected};
}

bool IsOneOf(std::string_view name, const std::vector<StaticText>& names) {
  return std::ranges::find(names, name) != names.end();
}

const SlotDef* OpDef::FindInput(std::string_view slot) const { return FindByName(inputs, slot); }
const SlotDef* OpDef::FindOutput(std::string_view slot) const { return FindByName(outputs, slot); }
const AttrDef* OpDef::FindAttr(std::string_view name) const { return FindByName(attrs, name); }

bool GivesAttribute(const Op& op, const SlotDef& slot) {
  const auto is_variable = [](const std::string& name) { return name != kEmptyVarName; };
  return !slot.attribute.empty() && std::ranges::any_of(op.Input(slot.name), is_variable);
}

void CheckOp(const OpDef& def, const Op& op) {
  CheckSlots(op, op.inputs, def.inputs, "input");
  CheckSlots(op, op.outputs, def.outputs, "output");
  CheckRequired(op, def);
  for (const auto& [name, value] : op.attrs) {
    const AttrDef* attr = def.FindAttr(name);
    if (attr == nullptr) {
      CheckUnknownAttribute(op, name, value);
      continue;
    }
    const AttrType found = TypeOf(value);
    SKIFF_ENFORCE(Widened(found) == Widened(attr->type), kInvalidArgument, op.type,
                  ": attribute \"", name, "\" is of type ", AttrTypeName(found), ", expected ",
                  AttrTypeName(attr->type), NumberText(value));
    // A long outside the range of int would be truncated later, so it is rejected here. Values of
    // lists are left to the ops: for some, an end beyond all ends is legal.
    if (!attr->accepts && attr->type != AttrType::kInt) continue;
    const Attribute typed = InTypeOf(value, *attr);
    if (attr->accepts && !attr->accepts(typed)) {
      Throw(attr->refusal, op.type, ": ", name, " = ", PrintAttribute(typed), ", expected ",
            attr->expected);
    }
  }
  for (const AttrDef& attr : def.attrs) {
    SKIFF_ENFORCE(attr.default_value.has_value() || op.HasAttr(attr.name) ||
                      IsGivenByInput(op, def, attr.name),
                  kInvalidArgument, op.type, ": attribute \"", attr.name,
                  "\" is not set and has no default");
  }
}

const Attribute* EffectiveAttr(const Op& op, const AttrDef& attr) {
  const auto it = op.attrs.find(attr.name);
  if (it != op.attrs.end()) return &it->second;
  return attr.default_value ? &*attr.default_value : nullptr;
}

std::string DescribeOp(const Op& op, int32_t block, size_t position) {
  std::string where = StrCat(op.type, " (block ", block, ", op #", position);
  // An attribute of another type is a mistake, but not the one that the caller is about to report.
  const auto found = op.attrs.find("op_namescope");
  const auto* scope = found == op.attrs.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (scope != nullptr && !scope->empty() && *scope != "/") where += StrCat(" \"", *scope, "\"");
  if (!op.site.file.empty()) where += StrCat(", ", op.site.file, ":", op.site.line);
  return where + ")";
}

}  // namespace skiff
