#include "framework/onnx/op_export.h"

#include <algorithm>
#include <utility>

#include "framework/analysis/op_uses.h"
#include "framework/op/registry.h"

namespace skiff::onnx_export {
namespace {

// Attributes without an effect on the values that an evaluation computes: hints to kernels of
// Fluid's, and what only a training needs.
constexpr std::string_view kHints[] = {
    "is_test",         "force_cpu",    "place_type",     "use_cudnn",     "is_sparse",
    "remote_prefetch", "entry_config", "entry",          "table_class",   "table_names",
    "height_sections", "trainer_id",   "slot",           "grad_inplace",  "numeric_stable_mode",
    "infer_flags",     "return_index", "return_inverse", "return_counts", "has_states",
    "is_train"};

bool IsHint(std::string_view name) { return std::ranges::find(kHints, name) != std::end(kHints); }

Tensor Scalar(DType dtype, double value) {
  Tensor tensor(Shape{}, dtype);
  VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, float, double>(
      dtype, "a constant", [&]<typename T>(T) { *tensor.data<T>() = static_cast<T>(value); });
  return tensor;
}

}  // namespace

OpExport::OpExport(const OpContext& context, ExportSite site)
    : context_(context), site_(std::move(site)), first_node_(site_.graph->position().nodes) {}

const TensorMeta& OpExport::Meta(std::string_view slot, size_t i) const {
  return context_.Input(slot, i);
}

std::string OpExport::In(std::string_view slot, size_t i) {
  read_.insert(std::string(slot));
  const std::vector<std::string>& arguments = op().Input(slot);
  if (i >= arguments.size()) Refuse("input \"", slot, "\" is absent");
  const std::string& variable = arguments[i];
  std::string value = site_.values->Find(variable);
  if (value.empty()) {
    Refuse("it reads \"", variable, "\", which has no value: ", site_.values->WhyMissing(variable));
  }
  if (site_.keeps_half || !IsHalf(Meta(slot, i).dtype)) return value;
  std::string& widened = widened_[value];
  if (widened.empty()) widened = Cast(value, DType::kFloat32);
  return widened;
}

std::vector<std::string> OpExport::Ins(std::string_view slot) {
  std::vector<std::string> values;
  for (size_t i = 0; i < InputCount(slot); ++i) values.push_back(In(slot, i));
  return values;
}

const Shape& OpExport::ShapeOf(std::string_view slot, size_t i) const {
  return Meta(slot, i).shape;
}

const Shape& OpExport::OutShape(std::string_view slot, size_t i) const {
  return context_.Output(slot, i).shape;
}

DType OpExport::DTypeOf(std::string_view slot, size_t i) const {
  const DType dtype = Meta(slot, i).dtype;
  return IsHalf(dtype) && !site_.keeps_half ? DType::kFloat32 : dtype;
}

DType OpExport::OutDType(std::string_view slot, size_t i) const {
  const DType dtype = context_.Output(slot, i).dtype;
  return IsHalf(dtype) && !site_.keeps_half ? DType::kFloat32 : dtype;
}

bool OpExport::Bool(std::string_view name) {
  Ignore(name);
  return context_.Attr<bool>(name);
}

int64_t OpExport::Int(std::string_view name) {
  Ignore(name);
  return context_.IntAttr(name);
}

float OpExport::Float(std::string_view name) {
  Ignore(name);
  return context_.Attr<float>(name);
}

const std::string& OpExport::Text(std::string_view name) {
  Ignore(name);
  return context_.Attr<std::string>(name);
}

std::vector<int64_t> OpExport::Ints(std::string_view name) {
  Ignore(name);
  if (IsGiven(name)) Refuse("\"", name, "\" is a tensor, expected an attribute");
  return context_.IntsAttr(name);
}

const Attribute& OpExport::Attr(std::string_view name) {
  Ignore(name);
  const AttrDef* def = context_.def().FindAttr(name);
  const Attribute* value = def == nullptr ? nullptr : EffectiveAttr(op(), *def);
  if (value == nullptr) Refuse("attribute \"", name, "\" isn't set");
  return *value;
}

int64_t OpExport::Axis(std::string_view name, int64_t rank) {
  if (IsGiven(name)) Refuse("\"", name, "\" is a tensor, expected an attribute");
  const int64_t axis = Int(name);
  return axis < 0 ? axis + rank : axis;
}

bool OpExport::IsGiven(std::string_view name) const {
  return std::ranges::any_of(context_.def().inputs, [&](const SlotDef& slot) {
    return slot.attribute == name && GivesAttribute(op(), slot);
  });
}

std::string OpExport::ListValue(const SlotDef& slot) {
  std::vector<std::string> parts;
  for (const std::string& value : Ins(slot.name)) {
    const std::string wide = Cast(value, DType::kInt64);
    parts.push_back(Node("Reshape", {wide, IntVector({-1})}));
  }
  return parts.size() == 1 ? parts[0] : Node("Concat", parts, {{"axis", int64_t{0}}});
}

std::string OpExport::IntsValue(std::string_view name) {
  for (const SlotDef& slot : context_.def().inputs) {
    if (slot.attribute != name || !GivesAttribute(op(), slot)) continue;
    Ignore(name);
    return ListValue(slot);
  }
  return IntVector(Ints(name));
}

std::vector<std::string> OpExport::Nodes(const std::string& type,
                                         const std::vector<std::string>& inputs,
                                         const NodeAttrs& attrs, size_t outputs) {
  return site_.graph->AddNode(type, inputs, attrs, outputs);
}

std::string OpExport::Node(const std::string& type, const std::vector<std::string>& inputs,
                           const NodeAttrs& attrs) {
  return Nodes(type, inputs, attrs, 1)[0];
}

std::string OpExport::Number(DType dtype, double value) {
  return site_.graph->AddConstant(Scalar(dtype, value));
}

std::string OpExport::IntVector(const std::vector<int64_t>& values) {
  return site_.graph->AddConstant(
      Tensor::FromValues(Shape{static_cast<int64_t>(values.size())}, values));
}

std::string OpExport::Constant(const Tensor& tensor) { return site_.graph->AddConstant(tensor); }

std::string OpExport::Cast(const std::string& value, DType dtype) {
  return Node("Cast", {value}, {{"to", OnnxDType(dtype)}});
}

void OpExport::NeedOpset(int least, std::string_view what) const {
  if (site_.opset < least)
    Refuse(what, " needs opset ", least, ", the export is for opset ", site_.opset);
}

bool OpExport::IsRagged(std::string_view slot, size_t i) const {
  return context_.HasInput(slot) && Meta(slot, i).lod_level > 0;
}

LoDValues OpExport::LoD(std::string_view slot, size_t i) {
  Ignore(slot);
  const std::string& variable = op().Input(slot)[i];
  LoDValues lod = site_.values->FindLoD(variable);
  if (lod.empty()) Refuse("the offsets of \"", variable, "\" are unknown");
  return lod;
}

void OpExport::SetVariable(const std::string& variable, const std::string& value) {
  std::string result = value;
  const std::string name = site_.values->NextName(variable);
  const bool is_named =
      std::ranges::any_of(new_values_, [&](const auto& entry) { return entry.second == result; });
  if (is_named || !site_.graph->Rename(result, name, first_node_)) {
    result = Node("Identity", {result});
    site_.graph->Rename(result, name, first_node_);
  }
  new_values_[variable] = name;
}

void OpExport::Set(std::string_view slot, const std::string& value, size_t i) {
  const std::vector<std::string>& arguments = op().Output(slot);
  if (i >= arguments.size() || context_.OutputIndex(slot, i) < 0) return;
  const bool narrows = IsHalf(context_.Output(slot, i).dtype) && !site_.keeps_half;
  SetVariable(arguments[i], narrows ? Cast(value, context_.Output(slot, i).dtype) : value);
}

void OpExport::SetLoD(std::string_view slot, LoDValues lod) {
  if (context_.HasOutput(slot)) new_lods_[op().Output(slot)[0]] = std::move(lod);
}

Block& OpExport::SubBlock() {
  Ignore("sub_block");
  return *site_.block->program()->block(op().Attr<BlockIndex>("sub_block").value);
}

std::vector<const Var*> OpExport::WrittenByBlock() const {
  std::vector<const Var*> written;
  for (const VarUse& use : UsesOf(DefaultOpRegistry(), *site_.block, site_.position).vars) {
    const bool is_tensor =
        use.var->kind == VarKind::kLoDTensor || use.var->kind == VarKind::kLoDTensorArray;
    if (use.writes && is_tensor) written.push_back(use.var);
  }
  return written;
}

void OpExport::AddOps(ExportValues* values) { site_.add_ops(&SubBlock(), values); }

LoDValues OpExport::SharedLoD(int32_t levels) const {
  for (const std::string& input : InputOrder(context_.def(), op())) {
    LoDValues lod = site_.values->FindLoD(input);
    if (static_cast<int32_t>(lod.size()) == levels) return lod;
  }
  return {};
}

void OpExport::Finish() {
  CheckAllRead();
  const std::vector<std::string> outputs = OutputOrder(context_.def(), op());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int32_t levels = context_.outputs()[i].lod_level;
    if (levels > 0 && !new_lods_.contains(outputs[i])) new_lods_[outputs[i]] = SharedLoD(levels);
  }
  for (const auto& [variable, value] : new_values_) {
    site_.values->Set(variable, value, new_lods_[variable]);
  }
  for (const std::string& name : op().OutputNames()) {
    if (new_values_.contains(name)) continue;
    site_.values->SetMissing(name, StrCat("this output of ", op().type, " has no form in ONNX"));
  }
}

void OpExport::CheckAllRead() const {
  for (const SlotDef& slot : context_.def().inputs) {
    if (!context_.HasInput(slot.name) || read_.contains(slot.name)) continue;
    Refuse("input \"", slot.name, "\" has no form in ONNX");
  }
  for (const AttrDef& attr : context_.def().attrs) {
    if (!op().HasAttr(attr.name) || read_.contains(attr.name) || IsHint(attr.name)) continue;
    const Attribute* value = EffectiveAttr(op(), attr);
    const bool is_default =
        attr.default_value.has_value() && SameAttribute(*value, *attr.default_value);
    if (!is_default) Refuse("this value of attribute \"", attr.name, "\" has no form in ONNX");
  }
}

}  // namespace skiff::onnx_export
