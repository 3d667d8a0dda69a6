#include "framework/onnx/onnx_node.h"

#include <cmath>
#include <map>
#include <utility>

#include "framework/onnx/tensor_proto.h"

namespace skiff {
namespace {

using onnx::AttributeProto;

template <typename T>
std::vector<int64_t> Whole(const Tensor& tensor) {
  const std::span<const T> values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace

OnnxNode::OnnxNode(const onnx::NodeProto& proto, const OnnxNodeContext& context,
                   std::vector<OnnxValuePtr> inputs, std::vector<OnnxValue*> outputs)
    : proto_(proto), context_(context), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

const OnnxValuePtr& OnnxNode::Value(size_t i) const {
  if (!Has(i)) Invalid("input ", i, " is absent");
  return inputs_[i];
}

Variable OnnxNode::In(size_t i) const { return VariableOf(Value(i)); }

Variable OnnxNode::InOfRank(size_t i, size_t least, size_t most) const {
  Variable variable = In(i);
  const size_t rank = variable.dims().size();
  if (rank < least || rank > most) {
    Invalid("input ", i, " is of rank ", rank, ", expected ", least, least == most ? "" : " to ",
            least == most ? "" : StrCat(most));
  }
  return variable;
}

const Tensor* OnnxNode::Known(size_t i) const { return Value(i)->known.get(); }

const std::vector<OnnxValuePtr>& OnnxNode::Items(size_t i) const {
  if (!Value(i)->items) Unsupported("input ", i, " isn't a sequence that is known");
  return *Value(i)->items;
}

const Tensor* OnnxNode::KnownAround(const std::string& name) const {
  const OnnxValuePtr value = context_.find(name);
  return value == nullptr ? nullptr : value->known.get();
}

ShiftedNumber OnnxNode::Shifted(size_t i) const {
  return ShiftedNumberOf(In(i),
                         [&](const std::string& name) { return context_.builder->Known(name); });
}

const Tensor* OnnxNode::Own(size_t i) const {
  const Tensor* known = Known(i);
  return inputs_[i]->is_weight && inputs_[i]->readers != 1 ? nullptr : known;
}

Variable OnnxNode::MakeOwn(size_t i, const std::string& suffix, Tensor tensor) const {
  OnnxValue value;
  value.name = inputs_[i]->name + suffix;
  value.known = std::make_shared<const Tensor>(std::move(tensor));
  value.is_weight = inputs_[i]->is_weight;
  return context_.builder->Make(value);
}

std::optional<std::vector<int64_t>> OnnxNode::KnownInts(size_t i) const {
  const Tensor* known = Known(i);
  if (known == nullptr) return std::nullopt;
  switch (known->dtype()) {
    case DType::kInt64:
      return Whole<int64_t>(*known);
    case DType::kInt32:
      return Whole<int32_t>(*known);
    case DType::kBool:
      return Whole<bool>(*known);
    default:
      Invalid("input ", i, " is of ", known->dtype(), ", expected whole numbers");
  }
}

std::optional<PartlyKnownDims> OnnxNode::KnownDims(size_t i) const {
  if (!Has(i)) return std::nullopt;
  const Tensor* known = Known(i);
  if (known == nullptr) return inputs_[i]->known_dims;
  const bool is_list = known->shape().rank() <= 1 &&
                       (known->dtype() == DType::kInt64 || known->dtype() == DType::kInt32);
  if (!is_list) return std::nullopt;
  std::vector<int64_t> numbers = *KnownInts(i);
  if (std::ranges::any_of(numbers, [](int64_t number) { return number < 0; })) return std::nullopt;
  return numbers;
}

std::vector<int64_t> OnnxNode::Ints(size_t i) const {
  if (!Has(i)) return {};
  auto known = KnownInts(i);
  if (!known) Unsupported("input ", i, " depends on data, expected numbers that are known");
  return *known;
}

double OnnxNode::Number(size_t i, double fallback) const {
  if (!Has(i)) return fallback;
  const Tensor* known = Known(i);
  if (known == nullptr) Unsupported("input ", i, " depends on data, expected a known number");
  if (known->element_count() != 1) {
    Invalid("input ", i, " has ", known->element_count(), " elements, expected 1");
  }
  return NumberIn(*known);
}

int64_t OnnxNode::WholeNumber(size_t i, int64_t fallback) const {
  if (!Has(i)) return fallback;
  const double number = Number(i, 0);
  // A double would round it.
  if (Known(i)->dtype() == DType::kInt64) return Known(i)->Item<int64_t>();
  if (!(std::abs(number) < 0x1p63)) Invalid("input ", i, " is ", number, ", expected an int64");
  return static_cast<int64_t>(number);
}

const AttributeProto* OnnxNode::Find(std::string_view name) const {
  for (const AttributeProto& attribute : proto_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

const AttributeProto* OnnxNode::Find(std::string_view name,
                                     AttributeProto::AttributeType type) const {
  const AttributeProto* found = Find(name);
  // Files of IR 1 have no types.
  if (found != nullptr && found->type() != type && found->type() != AttributeProto::UNDEFINED) {
    Invalid("attribute \"", name, "\" is of ", AttributeProto::AttributeType_Name(found->type()),
            ", expected ", AttributeProto::AttributeType_Name(type));
  }
  return found;
}

int64_t OnnxNode::Int(std::string_view name, int64_t fallback) const {
  const AttributeProto* found = Find(name, AttributeProto::INT);
  return found == nullptr ? fallback : found->i();
}

float OnnxNode::Float(std::string_view name, float fallback) const {
  const AttributeProto* found = Find(name, AttributeProto::FLOAT);
  return found == nullptr ? fallback : found->f();
}

std::string OnnxNode::String(std::string_view name, std::string_view fallback) const {
  const AttributeProto* found = Find(name, AttributeProto::STRING);
  return found == nullptr ? std::string(fallback) : found->s();
}

std::vector<int64_t> OnnxNode::IntList(std::string_view name, std::vector<int64_t> fallback) const {
  const AttributeProto* found = Find(name, AttributeProto::INTS);
  if (found == nullptr) return fallback;
  return {found->ints().begin(), found->ints().end()};
}

std::vector<float> OnnxNode::FloatList(std::string_view name, std::vector<float> fallback) const {
  const AttributeProto* found = Find(name, AttributeProto::FLOATS);
  if (found == nullptr) return fallback;
  return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> OnnxNode::StringList(std::string_view name) const {
  const AttributeProto* found = Find(name, AttributeProto::STRINGS);
  if (found == nullptr) return {};
  return {found->strings().begin(), found->strings().end()};
}

Tensor OnnxNode::TensorOf(std::string_view name) const {
  const AttributeProto* found = Find(name, AttributeProto::TENSOR);
  if (found == nullptr) Invalid("has no attribute \"", name, "\"");
  Tensor tensor = TensorFromOnnx(found->t(), context_.folder);
  return widens_half() ? WidenedHalf(tensor) : tensor;
}

const onnx::GraphProto& OnnxNode::Graph(std::string_view name) const {
  const AttributeProto* found = Find(name, AttributeProto::GRAPH);
  if (found == nullptr || !found->has_g()) Invalid("has no graph \"", name, "\"");
  return found->g();
}

std::vector<OnnxValuePtr> OnnxNode::Body(std::string_view name,
                                         const std::vector<OnnxValuePtr>& inputs,
                                         size_t output_count) const {
  const onnx::GraphProto& graph = Graph(name);
  const auto check = [&](const char* what, int found, size_t expected) {
    if (static_cast<size_t>(found) == expected) return;
    Invalid("its ", name, " has ", found, " ", what, ", expected ", expected);
  };
  check("inputs", graph.input_size(), inputs.size());
  check("outputs", graph.output_size(), output_count);
  std::vector<OnnxValuePtr> outputs = context_.convert(graph, inputs);
  for (const OnnxValuePtr& output : outputs) {
    if (output == nullptr) Invalid("its ", name, " gives an absent input");
    if (output->is_poisoned) throw SpoiltGraph();
  }
  return outputs;
}

Variable OnnxNode::VariableOf(const OnnxValuePtr& value) const {
  return context_.builder->Materialise(value.get());
}

std::optional<std::vector<int64_t>> OnnxNode::IntsSince(int64_t since, size_t i,
                                                        std::string_view name) const {
  if (opset() >= since) {
    if (!Has(i)) return std::nullopt;
    return Ints(i);
  }
  if (!HasAttr(name)) return std::nullopt;
  return IntList(name);
}

void OnnxNode::Out(size_t i, const Variable& variable) const {
  if (Wants(i)) outputs_[i]->variable = variable;
}

void OnnxNode::OutKnown(size_t i, Tensor tensor) const {
  if (Wants(i)) outputs_[i]->known = std::make_shared<const Tensor>(std::move(tensor));
}

void OnnxNode::OutItems(size_t i, std::vector<OnnxValuePtr> items) const {
  if (Wants(i)) outputs_[i]->items = std::move(items);
}

void OnnxNode::OutKnownDims(size_t i, std::optional<PartlyKnownDims> dims) const {
  if (Wants(i)) outputs_[i]->known_dims = std::move(dims);
}

void OnnxNode::OutSame(size_t i, size_t k) const { OutValue(i, *Value(k)); }

void OnnxNode::OutValue(size_t i, const OnnxValue& value) const {
  if (Wants(i)) *outputs_[i] = value;
}

Variable OnnxNode::Emit(Op op, std::string_view slot) const {
  const LayerCall layer(op.type, "", std::source_location::current());
  return layer.AppendFor(std::move(op), slot);
}

void OnnxNode::CheckInputs(size_t least, size_t most) const {
  for (size_t i = 0; i < least; ++i) {
    if (!Has(i)) Invalid("input ", i, " is absent");
  }
  if (inputs_.size() > most) {
    Invalid("has ", inputs_.size(), " inputs, expected at most ", most);
  }
}

int64_t OnnxNode::Axis(int64_t axis, size_t rank) const {
  const auto count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count) {
    Invalid("axis ", axis, " is outside [", -count, ", ", count - 1, "]");
  }
  return axis < 0 ? axis + count : axis;
}

DType OnnxNode::DTypeOfOnnx(int64_t data_type) const {
  const auto number = static_cast<int32_t>(data_type);
  if (number != data_type) Invalid("names the dtype ", data_type);
  const auto dtype = DTypeFromOnnx(number);
  if (!dtype) Unsupported("makes ", OnnxTypeName(number), ", which Skiff doesn't have");
  return widens_half() && IsHalf(*dtype) ? DType::kFloat32 : *dtype;
}

std::string DescribeOnnxNode(const onnx::NodeProto& node, int64_t opset) {
  const std::string name = !node.name().empty()     ? node.name()
                           : node.output_size() > 0 ? node.output(0)
                                                    : std::string();
  const std::string domain = node.domain().empty() ? "ai.onnx" : node.domain();
  return StrCat(node.op_type(), " (", domain, " ", opset, ") \"", name, "\"");
}

OnnxConverter FindOnnxConverter(std::string_view op) {
  static const std::map<std::string_view, OnnxConverter> converters = [] {
    std::map<std::string_view, OnnxConverter> all;
    for (const auto& family :
         {ElementwiseConverters(), ShapeConverters(), SliceConverters(), PadConverters(),
          FillConverters(), ImageConverters(), IndexConverters(), ReduceConverters(),
          NnConverters(), RecurrentConverters(), ResizeConverters(), LossConverters(),
          PoolConverters(), EinsumConverters(), AttentionConverters(), ControlFlowConverters(),
          SequenceConverters()}) {
      for (const OnnxConverterEntry& entry : family) all.emplace(entry.op, entry.convert);
    }
    return all;
  }();
  const auto found = converters.find(op);
  return found == converters.end() ? nullptr : found->second;
}

}  // namespace skiff
