#include "framework/op/op_context.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/offset_count.h"

namespace skiff {

std::vector<std::string> InputOrder(const OpDef& def, const Op& op) {
  std::vector<std::string> order;
  for (const SlotDef& slot : def.inputs) {
    for (const std::string& name : op.Input(slot.name)) order.push_back(name);
  }
  return order;
}

std::vector<std::string> OutputOrder(const OpDef& def, const Op& op) {
  std::vector<std::string> order;
  for (const SlotDef& slot : def.outputs) {
    for (const std::string& name : op.Output(slot.name)) order.push_back(name);
  }
  return order;
}

OpContext::OpContext(const Op& op, const OpDef& def, std::vector<TensorMeta> inputs,
                     std::vector<TensorMeta> outputs, Place place)
    : op_(op), def_(def), inputs_(std::move(inputs)), outputs_(std::move(outputs)), place_(place) {
  for (const SlotDef& slot : def_.inputs) {
    if (!GivesAttribute(op_, slot) || FindGiven(slot.attribute) != nullptr) continue;
    given_.push_back({.slot = &slot, .value = ValueGivenBy(slot)});
  }
}

const OpContext::GivenAttr* OpContext::FindGiven(std::string_view name) const {
  for (const GivenAttr& given : given_) {
    if (given.slot->attribute == name) return &given;
  }
  return nullptr;
}

namespace {

// Returns the attribute of these numbers; nothing if it is to be one number and they aren't.
template <typename T>
std::optional<Attribute> AttributeOf(std::vector<T> numbers, bool is_one) {
  if (!is_one) return Attribute(std::move(numbers));
  return numbers.size() == 1 ? std::optional<Attribute>(numbers[0]) : std::nullopt;
}

// Appends the elements. Returns false for a dtype whose elements aren't such numbers.
template <typename T>
bool AppendElements(const Tensor& tensor, std::vector<T>* numbers) {
  const auto append = [&]<typename Element>(Element) {
    for (const Element element : tensor.values<Element>()) {
      numbers->push_back(static_cast<T>(element));
    }
    return true;
  };
  if constexpr (std::is_floating_point_v<T>) {
    if (tensor.dtype() == DType::kFloat32) return append(float{});
    return tensor.dtype() == DType::kFloat64 && append(double{});
  } else {
    if (tensor.dtype() == DType::kInt32) return append(int32_t{});
    return tensor.dtype() == DType::kInt64 && append(int64_t{});
  }
}

}  // namespace

std::optional<Attribute> OpContext::ValueGivenBy(const SlotDef& slot) const {
  const AttrType type = def_.FindAttr(slot.attribute)->type;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  for (size_t i = 0; i < InputCount(slot.name); ++i) {
    const int index = InputIndex(slot.name, i);
    if (index < 0) return std::nullopt;
    const std::shared_ptr<const Tensor>& contents = inputs_[static_cast<size_t>(index)].contents;
    if (contents == nullptr) return std::nullopt;
    const bool are_numbers =
        IsFloats(type) ? AppendElements(*contents, &floats) : AppendElements(*contents, &ints);
    if (!are_numbers) return std::nullopt;
  }
  const bool is_one = IsOneNumber(type);
  return IsFloats(type) ? AttributeOf(std::move(floats), is_one)
                        : AttributeOf(std::move(ints), is_one);
}

bool OpContext::Knows(std::string_view name) const {
  const GivenAttr* given = FindGiven(name);
  return given == nullptr || given->value.has_value();
}

int64_t OpContext::CountOfInts(std::string_view name) const {
  const GivenAttr* given = FindGiven(name);
  if (given == nullptr || given->value) return static_cast<int64_t>(IntsAttr(name).size());
  if (given->slot->duplicable) return static_cast<int64_t>(InputCount(given->slot->name));
  const Shape& shape = Input(given->slot->name).shape;
  return shape.is_known() ? shape.element_count() : -1;
}

std::vector<int64_t> OpContext::DimsAttr(std::string_view name) const {
  if (Knows(name)) return IntsAttr(name);
  const int64_t count = CountOfInts(name);
  SKIFF_ENFORCE(count >= 0, kInvalidArgument, op_.type, ": input \"", FindGiven(name)->slot->name,
                "\" has the shape ", Input(FindGiven(name)->slot->name).shape,
                ": expected a known number of elements");
  // A shape may claim any number of elements.
  SKIFF_ENFORCE(FindGiven(name)->slot->duplicable || count <= Shape::kMaxRank, kInvalidArgument,
                op_.type, ": input \"", FindGiven(name)->slot->name, "\" has ", count,
                " elements, expected at most ", Shape::kMaxRank);
  return std::vector<int64_t>(static_cast<size_t>(count), -1);
}

int OpContext::IndexOf(const std::vector<SlotDef>& slots, bool is_input, std::string_view slot,
                       size_t i) const {
  // Arguments of all slots are numbered through, in the order of the definition, not of the op: so
  // a kernel's indices don't depend on the order in which a program names slots.
  int index = 0;
  for (const SlotDef& def : slots) {
    const std::vector<std::string>& arguments =
        is_input ? op_.Input(def.name) : op_.Output(def.name);
    if (def.name == slot) {
      const bool present = i < arguments.size() && arguments[i] != kEmptyVarName;
      return present ? index + static_cast<int>(i) : -1;
    }
    // @EMPTY@ arguments count, too: every argument has an index.
    index += static_cast<int>(arguments.size());
  }
  Throw(ErrorCode::kInvalidArgument, op_.type, ": the definition has no slot \"", slot, "\"");
}

int OpContext::InputIndex(std::string_view slot, size_t i) const {
  return IndexOf(def_.inputs, true, slot, i);
}

int OpContext::OutputIndex(std::string_view slot, size_t i) const {
  return IndexOf(def_.outputs, false, slot, i);
}

size_t OpContext::InputCount(std::string_view slot) const { return op_.Input(slot).size(); }
size_t OpContext::OutputCount(std::string_view slot) const { return op_.Output(slot).size(); }

const TensorMeta& OpContext::Input(std::string_view slot, size_t i) const {
  const int index = InputIndex(slot, i);
  SKIFF_ENFORCE(index >= 0, kInvalidArgument, op_.type, ": input \"", slot, "\" is missing");
  return inputs_[static_cast<size_t>(index)];
}

const TensorMeta& OpContext::Output(std::string_view slot, size_t i) const {
  const int index = OutputIndex(slot, i);
  SKIFF_ENFORCE(index >= 0, kInvalidArgument, op_.type, ": output \"", slot, "\" is missing");
  return outputs_[static_cast<size_t>(index)];
}

void OpContext::SetOutput(std::string_view slot, const Shape& shape, DType dtype, size_t i) {
  const int index = OutputIndex(slot, i);
  if (index < 0) return;
  TensorMeta& output = outputs_[static_cast<size_t>(index)];
  output.shape = shape;
  output.dtype = dtype;
  output.layout = Layout::Plain();
}

void OpContext::SetSelectedRows(std::string_view slot, const Shape& shape, DType dtype,
                                int64_t height, size_t i) {
  SetOutput(slot, shape, dtype, i);
  const int index = OutputIndex(slot, i);
  if (index >= 0) outputs_[static_cast<size_t>(index)].layout = Layout::SelectedRows(height);
}

void OpContext::SetOutputLike(std::string_view slot, std::string_view input_slot, size_t i) {
  const int index = OutputIndex(slot, i);
  if (index < 0) return;
  // One input may serve several outputs.
  const TensorMeta& from = Input(input_slot, i < InputCount(input_slot) ? i : 0);
  TensorMeta& to = outputs_[static_cast<size_t>(index)];
  to.shape = from.shape;
  to.dtype = from.dtype;
  to.lod_level = from.lod_level;
  to.lod = from.lod;
  // Shape rules know no blocks: the pass `layout` decides about those later.
  to.layout = from.is_selected_rows() ? from.layout : Layout::Plain();
}

const LoD* OpContext::InputLoD(std::string_view slot, int32_t levels, size_t i) const {
  const TensorMeta& input = Input(slot, i);
  SKIFF_ENFORCE(input.lod_level >= levels, kInvalidArgument, op_.type, ": input \"", slot,
                "\" has ", input.lod_level, " LoD levels, expected at least ", levels);
  return input.lod == nullptr ? nullptr : &input.lod->offsets;
}

void OpContext::ShareLoD(std::string_view slot, std::string_view input_slot, size_t i) {
  const int index = OutputIndex(slot, i);
  if (index < 0) return;
  const TensorMeta& from = Input(input_slot, i < InputCount(input_slot) ? i : 0);
  TensorMeta& to = outputs_[static_cast<size_t>(index)];
  to.lod_level = from.lod_level;
  to.lod = from.lod;
}

std::shared_ptr<const LoDGroup> OpContext::Derived(const std::vector<std::string_view>& input_slots,
                                                   LoDGroup::Derive derive) const {
  auto group = std::make_shared<LoDGroup>();
  std::vector<const LoD*> parents;
  for (const std::string_view slot : input_slots) {
    for (size_t i = 0; i < InputCount(slot); ++i) {
      group->parents.push_back(Input(slot, i).lod);
      if (group->parents.back() == nullptr) return nullptr;
      parents.push_back(&group->parents.back()->offsets);
    }
  }
  group->derive = [derive = std::move(derive)](std::span<const LoD* const> given, LoD* derived) {
    derive(given, derived);
    for (const auto& level : *derived) CheckOffsetCount(std::ssize(level));
  };
  group->derive(parents, &group->offsets);
  return group;
}

void CheckOffsetCount(int64_t count) {
  SKIFF_ENFORCE(count <= kMostOffsets, kUnimplemented, "a LoD would have ", count,
                " offsets: expected at most ", kMostOffsets);
}

const LoD* OpContext::DeriveLoD(std::string_view slot,
                                const std::vector<std::string_view>& input_slots, int32_t levels,
                                LoDGroup::Derive derive) {
  std::shared_ptr<const LoDGroup> group = Derived(input_slots, std::move(derive));
  const int index = OutputIndex(slot);
  if (index < 0) return nullptr;
  TensorMeta& output = outputs_[static_cast<size_t>(index)];
  output.lod_level = levels;
  output.lod = std::move(group);
  return output.lod == nullptr ? nullptr : &output.lod->offsets;
}

const LoD* OpContext::DependOnLoD(std::string_view slot,
                                  const std::vector<std::string_view>& input_slots,
                                  LoDGroup::Derive derive) {
  std::shared_ptr<const LoDGroup> group = Derived(input_slots, std::move(derive));
  const int index = OutputIndex(slot);
  if (index < 0) return nullptr;
  TensorMeta& output = outputs_[static_cast<size_t>(index)];
  output.shape_lod = std::move(group);
  return output.shape_lod == nullptr ? nullptr : &output.shape_lod->offsets;
}

const Attribute& OpContext::GetAttr(std::string_view name) const {
  const GivenAttr* given = FindGiven(name);
  if (given != nullptr && given->value) return *given->value;
  const auto it = op_.attrs.find(std::string(name));
  if (it != op_.attrs.end()) return it->second;
  const AttrDef* attr = def_.FindAttr(name);
  SKIFF_ENFORCE(attr != nullptr && attr->default_value.has_value(), kInvalidArgument, op_.type,
                ": attribute \"", name, "\" is not set and has no default");
  return *attr->default_value;
}

bool OpContext::HasAttr(std::string_view name) const {
  if (op_.HasAttr(name)) return true;
  const AttrDef* attr = def_.FindAttr(name);
  return attr != nullptr && attr->default_value.has_value();
}

int64_t OpContext::IntAttr(std::string_view name) const {
  const Attribute& attribute = GetAttr(name);
  // Files of different versions of Fluid store one attribute as int or as long.
  if (const auto* value = std::get_if<int32_t>(&attribute)) return *value;
  if (const auto* value = std::get_if<int64_t>(&attribute)) return *value;
  ThrowAttrType(name, AttrType::kLong);
}

std::vector<int64_t> OpContext::IntsAttr(std::string_view name) const {
  const Attribute& attribute = GetAttr(name);
  if (const auto* value = std::get_if<std::vector<int32_t>>(&attribute)) {
    return {value->begin(), value->end()};
  }
  if (const auto* value = std::get_if<std::vector<int64_t>>(&attribute)) return *value;
  ThrowAttrType(name, AttrType::kLongs);
}

void OpContext::ThrowAttrType(std::string_view name, AttrType expected) const {
  Throw(ErrorCode::kInvalidArgument, op_.type, ": attribute \"", name, "\" is of type ",
        AttrTypeName(TypeOf(GetAttr(name))), ", expected ", AttrTypeName(expected));
}

int64_t MergeDims(int64_t a, int64_t b, std::string_view what) {
  if (a < 0) return b;
  if (b < 0) return a;
  SKIFF_ENFORCE(a == b, kInvalidArgument, what, ": ", a, " and ", b, " differ");
  return a;
}

}  // namespace skiff
