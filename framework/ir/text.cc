#include "framework/ir/text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "framework/base/error.h"
#include "framework/ir/text_escape.h"

namespace skiff {
namespace {

template <typename Float, typename Bits>
std::string NanText(Float value) {
  // A NaN has a sign and a payload, which must survive: programs are compared bit by bit.
  const auto bits = std::bit_cast<Bits>(value);
  if (bits == std::bit_cast<Bits>(std::numeric_limits<Float>::quiet_NaN())) return "nan";
  char digits[2 * sizeof(Bits)];
  const auto end = std::to_chars(digits, digits + sizeof(digits), bits, 16).ptr;
  return "nan(0x" + std::string(digits, end) + ")";
}

// Returns the shortest text that reads back as the same bits, and that can't be mistaken for an
// integer.
template <typename Float, typename Bits>
std::string FloatText(Float value) {
  if (std::isnan(value)) return NanText<Float, Bits>(value);
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char characters[64];
  const auto end = std::to_chars(characters, characters + sizeof(characters), value).ptr;
  std::string text(characters, end);
  // "1" would be read as an int.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string ValueText(float value) { return FloatText<float, uint32_t>(value); }
std::string ValueText(double value) { return FloatText<double, uint64_t>(value); }
std::string ValueText(int32_t value) { return StrCat(value); }
std::string ValueText(int64_t value) { return StrCat(value); }
std::string ValueText(bool value) { return value ? "true" : "false"; }
std::string ValueText(const std::string& value) { return Quote(value); }
std::string ValueText(BlockIndex value) { return StrCat(value.value); }
std::string ValueText(const VarName& value) { return Quote(value.value); }

template <typename T>
std::string ValueText(const std::vector<T>& values) {
  std::string text = "[";
  for (const auto& value : values) {
    if (text.size() > 1) text += ", ";
    // The elements of vector<bool> are proxies.
    text += ValueText(static_cast<const T&>(value));
  }
  return text + "]";
}

// All but the four types whose values can't be mistaken for another type's: 1, 0.5, "text", true.
bool NeedsTypeName(AttrType type) {
  return type != AttrType::kInt && type != AttrType::kFloat && type != AttrType::kString &&
         type != AttrType::kBool;
}

std::string SlotsText(const Slots& slots) {
  std::string text;
  for (const SlotArguments& entry : slots) {
    if (!text.empty()) text += ", ";
    text += NameText(entry.slot) + ": " + ValueText(entry.arguments);
  }
  return text;
}

std::string VarText(const Var& var) {
  std::string text = (var.is_parameter ? "param " : "var ") + Quote(var.name);
  if (var.kind != VarKind::kLoDTensor) text += StrCat(" ", VarKindName(var.kind));
  text += StrCat(" ", DTypeName(var.dtype), " ", ValueText(var.dims));
  if (var.lod_level != 0) text += StrCat(" lod=", var.lod_level);
  if (var.persistable) text += " persistable";
  if (var.stop_gradient) text += " stop_gradient";
  if (var.need_check_feed) text += " check_feed";
  if (!var.trainable) text += " not_trainable";
  const bool default_factor =
      std::bit_cast<uint32_t>(var.learning_rate_factor) == std::bit_cast<uint32_t>(1.0f);
  if (!default_factor) text += " learning_rate_factor=" + ValueText(var.learning_rate_factor);
  if (!var.attrs.empty()) text += " " + PrintAttributes(var.attrs);
  return text;
}

// Returns a comment in which everything that would end it early, or isn't ASCII, is escaped as in a
// string.
std::string SiteText(const CreationSite& site) {
  const std::string quoted = Quote(site.file);
  return StrCat(std::string_view(quoted).substr(1, quoted.size() - 2), ":", site.line);
}

std::string BlockText(const Block& block) {
  std::string text = StrCat("  block ", block.index());
  if (block.parent_index() != -1) text += StrCat(" parent=", block.parent_index());
  if (block.forward_block_index != -1) text += StrCat(" forward=", block.forward_block_index);
  text += " {\n";
  for (const auto& var : block.vars()) text += "    " + VarText(*var) + "\n";
  for (const auto& op : block.ops()) text += "    " + PrintOp(*op) + "\n";
  return text + "  }\n";
}

}  // namespace

std::string PrintAttribute(const Attribute& attribute) {
  const AttrType type = TypeOf(attribute);
  const std::string value = std::visit([](const auto& v) { return ValueText(v); }, attribute);
  return NeedsTypeName(type) ? StrCat(AttrTypeName(type), " ", value) : value;
}

std::string PrintAttributes(const AttributeMap& attrs) {
  std::string text = "{";
  for (const auto& [name, attribute] : attrs) {
    if (text.size() > 1) text += ", ";
    text += NameText(name) + " = " + PrintAttribute(attribute);
  }
  return text + "}";
}

std::string PrintOp(const Op& op) {
  std::string text =
      "{" + SlotsText(op.outputs) + "} = " + NameText(op.type) + "(" + SlotsText(op.inputs) + ")";
  if (op.is_target) text += " target";
  if (!op.attrs.empty()) text += " " + PrintAttributes(op.attrs);
  if (!op.site.file.empty()) text += "  # " + SiteText(op.site);
  return text;
}

std::string PrintProgram(const Program& program) {
  std::string text = "program";
  if (program.seed != 0) text += StrCat(" seed=", program.seed);
  if (program.version != 0) text += StrCat(" version=", program.version);
  text += " {\n";
  for (const auto& [op, version] : program.op_versions) {
    text += StrCat("  op_version ", NameText(op), " = ", version, "\n");
  }
  for (size_t i = 0; i < program.block_count(); ++i) {
    text += BlockText(*program.block(static_cast<int32_t>(i)));
  }
  return text + "}\n";
}

}  // namespace skiff
