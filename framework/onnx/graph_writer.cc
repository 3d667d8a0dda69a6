#include "framework/onnx/graph_writer.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/onnx/model_file.h"

namespace skiff::onnx_export {
namespace {

// Larger constants are parameters, each of which is its own.
constexpr int64_t kSharedConstantBytes = 4096;

// The version of the file format that came with an opset.
int64_t IrVersionOf(int opset) {
  if (opset <= 14) return 7;
  if (opset <= 18) return 8;
  if (opset <= 20) return 9;
  if (opset <= 22) return 10;
  return 11;
}

std::string BytesOf(const Tensor& tensor) {
  const auto bytes = static_cast<size_t>(tensor.element_count() * SizeOf(tensor.dtype()));
  if (bytes == 0) return {};
  return {static_cast<const char*>(tensor.raw_data()), bytes};
}

void SetTensor(const Tensor& tensor, onnx::TensorProto* proto) {
  SKIFF_ENFORCE(tensor.place().kind == PlaceKind::kCpu && !tensor.is_selected_rows() &&
                    tensor.layout() == Layout::Plain(),
                kInvalidArgument, "a constant of a graph is not a plain tensor on the CPU");
  for (const int64_t dim : tensor.shape()) proto->add_dims(dim);
  proto->set_data_type(static_cast<int32_t>(OnnxDType(tensor.dtype())));
  proto->set_raw_data(BytesOf(tensor));
}

struct AttrSetter {
  onnx::AttributeProto* attr;

  void operator()(int64_t value) const {
    attr->set_type(onnx::AttributeProto::INT);
    attr->set_i(value);
  }
  void operator()(float value) const {
    attr->set_type(onnx::AttributeProto::FLOAT);
    attr->set_f(value);
  }
  void operator()(const std::string& value) const {
    attr->set_type(onnx::AttributeProto::STRING);
    attr->set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    attr->set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attr->add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    attr->set_type(onnx::AttributeProto::FLOATS);
    for (const float value : values) attr->add_floats(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    attr->set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) attr->add_strings(value);
  }
  void operator()(const Tensor& value) const {
    attr->set_type(onnx::AttributeProto::TENSOR);
    SetTensor(value, attr->mutable_t());
  }
  void operator()(const Subgraph& value) const {
    attr->set_type(onnx::AttributeProto::GRAPH);
    attr->mutable_g()->Swap(value.get());
  }
};

void SetValueInfo(const std::string& name, const GraphType& type, onnx::ValueInfoProto* info) {
  info->set_name(name);
  onnx::TypeProto* proto = info->mutable_type();
  if (type.is_sequence) proto = proto->mutable_sequence_type()->mutable_elem_type();
  auto* tensor = proto->mutable_tensor_type();
  tensor->set_elem_type(static_cast<int32_t>(OnnxDType(type.dtype)));
  if (!type.dims) return;
  auto* shape = tensor->mutable_shape();
  for (const GraphDim& dim : *type.dims) {
    auto* dim_proto = shape->add_dim();
    if (dim.size >= 0) {
      dim_proto->set_dim_value(dim.size);
    } else if (!dim.symbol.empty()) {
      dim_proto->set_dim_param(dim.symbol);
    }
  }
}

bool Contains(const google::protobuf::RepeatedPtrField<std::string>& names,
              const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool Makes(const onnx::GraphProto& graph, const std::string& value) {
  return std::ranges::any_of(
      graph.node(), [&](const onnx::NodeProto& node) { return Contains(node.output(), value); });
}

// Gives a value that nodes read another name, in the graphs inside, too.
void RenameReads(const std::string& value, const std::string& name, onnx::NodeProto* node) {
  std::ranges::replace(*node->mutable_input(), value, name);
  for (onnx::AttributeProto& attr : *node->mutable_attribute()) {
    if (attr.type() != onnx::AttributeProto::GRAPH) continue;
    for (onnx::NodeProto& inner : *attr.mutable_g()->mutable_node()) {
      RenameReads(value, name, &inner);
    }
  }
}

// Removes the nodes whose outputs nothing reads, and adds what the others read.
void DropUnreadNodes(onnx::GraphProto* graph, std::set<std::string>* read) {
  for (const onnx::ValueInfoProto& output : graph->output()) read->insert(output.name());
  auto* nodes = graph->mutable_node();
  for (int i = nodes->size() - 1; i >= 0; --i) {
    onnx::NodeProto* node = nodes->Mutable(i);
    const bool is_read = std::ranges::any_of(
        node->output(), [&](const std::string& output) { return read->contains(output); });
    if (!is_read) {
      node->set_op_type("");
      continue;
    }
    read->insert(node->input().begin(), node->input().end());
    for (onnx::AttributeProto& attr : *node->mutable_attribute()) {
      if (attr.type() == onnx::AttributeProto::GRAPH) DropUnreadNodes(attr.mutable_g(), read);
    }
  }
  const auto unread = std::remove_if(nodes->begin(), nodes->end(), [](const onnx::NodeProto& node) {
    return node.op_type().empty();
  });
  nodes->DeleteSubrange(static_cast<int>(unread - nodes->begin()),
                        static_cast<int>(nodes->end() - unread));
}

}  // namespace

int64_t OnnxDType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return onnx::TensorProto::BOOL;
    case DType::kInt16:
      return onnx::TensorProto::INT16;
    case DType::kInt32:
      return onnx::TensorProto::INT32;
    case DType::kInt64:
      return onnx::TensorProto::INT64;
    case DType::kFloat16:
      return onnx::TensorProto::FLOAT16;
    case DType::kFloat32:
      return onnx::TensorProto::FLOAT;
    case DType::kFloat64:
      return onnx::TensorProto::DOUBLE;
    case DType::kUint8:
      return onnx::TensorProto::UINT8;
    case DType::kInt8:
      return onnx::TensorProto::INT8;
    case DType::kBFloat16:
      return onnx::TensorProto::BFLOAT16;
  }
  Throw(ErrorCode::kInvalidArgument, "dtype ", static_cast<int32_t>(dtype), " has no form in ONNX");
}

GraphWriter::GraphWriter() { BeginSubgraph(); }
GraphWriter::~GraphWriter() = default;

std::string GraphWriter::FreshName(const std::string& prefix) {
  std::string name = prefix;
  while (!taken_.insert(name).second) name = StrCat(prefix, "_", ++counters_[prefix]);
  return name;
}

std::vector<std::string> GraphWriter::AddNode(const std::string& type,
                                              const std::vector<std::string>& inputs,
                                              const NodeAttrs& attrs, size_t outputs) {
  onnx::NodeProto* node = innermost().add_node();
  node->set_op_type(type);
  node->set_name(FreshName(type));
  for (const std::string& input : inputs) node->add_input(input);
  for (const NodeAttr& attr : attrs) {
    onnx::AttributeProto* proto = node->add_attribute();
    proto->set_name(attr.name);
    std::visit(AttrSetter{proto}, attr.value);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(FreshName(node->name() + ".out"));
    node->add_output(names.back());
  }
  return names;
}

GraphPosition GraphWriter::position() const {
  return {.depth = graphs_.size(), .nodes = static_cast<size_t>(innermost().node_size())};
}

void GraphWriter::ReturnTo(const GraphPosition& position) {
  graphs_.resize(position.depth);
  const int first = static_cast<int>(position.nodes);
  innermost().mutable_node()->DeleteSubrange(first, innermost().node_size() - first);
}

bool GraphWriter::Rename(const std::string& value, const std::string& name, size_t first_node) {
  onnx::GraphProto& graph = innermost();
  const auto first = graph.mutable_node()->begin() + static_cast<std::ptrdiff_t>(first_node);
  const auto maker = std::find_if(first, graph.mutable_node()->end(),
                                  [&](const auto& node) { return Contains(node.output(), value); });
  if (maker == graph.mutable_node()->end() || pinned_.contains(value)) return false;
  std::ranges::replace(*maker->mutable_output(), value, name);
  for (auto node = maker; node != graph.mutable_node()->end(); ++node) {
    RenameReads(value, name, &*node);
  }
  return true;
}

bool GraphWriter::RenameInitializer(const std::string& value, const std::string& name) {
  auto* initializers = graphs_.front()->mutable_initializer();
  const auto found = std::ranges::find_if(
      *initializers, [&](const auto& tensor) { return tensor.name() == value; });
  if (found == initializers->end()) return false;
  found->set_name(name);
  for (const Subgraph& graph : graphs_) {
    for (onnx::NodeProto& node : *graph->mutable_node()) RenameReads(value, name, &node);
  }
  return true;
}

std::optional<Producer> GraphWriter::ProducerOf(const std::string& value) const {
  for (const Subgraph& graph : graphs_) {
    for (const onnx::NodeProto& node : graph->node()) {
      if (!Contains(node.output(), value)) continue;
      return Producer{.type = node.op_type(), .inputs = {node.input().begin(), node.input().end()}};
    }
  }
  return std::nullopt;
}

void GraphWriter::BeginSubgraph() { graphs_.push_back(std::make_shared<onnx::GraphProto>()); }

Subgraph GraphWriter::EndSubgraph() {
  Subgraph ended = std::move(graphs_.back());
  graphs_.pop_back();
  ended->set_name(FreshName("body"));
  return ended;
}

std::string GraphWriter::AddConstant(const Tensor& tensor) {
  const auto add = [&] {
    const std::string name = FreshName("constant");
    AddInitializer(name, tensor);
    // Readers take initializers of floats for parameters, and may train them.
    if (IsFloat(tensor.dtype()) && tensor.shape().rank() > 0) float_constants_.insert(name);
    return name;
  };
  if (tensor.element_count() * SizeOf(tensor.dtype()) > kSharedConstantBytes) return add();
  std::string& name = constants_[{tensor.dtype(), tensor.shape().ToVector(), BytesOf(tensor)}];
  if (name.empty()) name = add();
  return name;
}

void GraphWriter::AddInitializer(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto* proto = graphs_.front()->add_initializer();
  proto->set_name(name);
  SetTensor(tensor, proto);
}

void GraphWriter::AddInput(const std::string& name, const GraphType& type) {
  SetValueInfo(name, type, innermost().add_input());
}

std::string GraphWriter::AddOutput(const std::string& value, const GraphType& type) {
  const bool is_output =
      std::ranges::any_of(innermost().output(), [&](const auto& o) { return o.name() == value; });
  // An output that no node makes isn't one for every reader.
  const bool is_copied = is_output || !Makes(innermost(), value);
  const std::string name = is_copied ? AddNode("Identity", {value}, {})[0] : value;
  SetValueInfo(name, type, innermost().add_output());
  return name;
}

void GraphWriter::DropUnread() {
  std::set<std::string> read;
  DropUnreadNodes(graphs_.front().get(), &read);
  auto* constants = graphs_.front()->mutable_initializer();
  const auto unread = std::stable_partition(
      constants->pointer_begin(), constants->pointer_end(),
      [&read](const onnx::TensorProto* constant) { return read.contains(constant->name()); });
  constants->DeleteSubrange(static_cast<int>(unread - constants->pointer_begin()),
                            static_cast<int>(constants->pointer_end() - unread));
}

void GraphWriter::MakeNodesOfFloatConstants() {
  auto* initializers = graphs_.front()->mutable_initializer();
  auto* nodes = graphs_.front()->mutable_node();
  const int others = nodes->size();
  const auto moved = std::stable_partition(
      initializers->pointer_begin(), initializers->pointer_end(),
      [&](const onnx::TensorProto* tensor) { return !float_constants_.contains(tensor->name()); });
  for (auto it = moved; it != initializers->pointer_end(); ++it) {
    onnx::NodeProto* node = nodes->Add();
    node->set_op_type("Constant");
    node->set_name(FreshName("Constant"));
    node->add_output((*it)->name());
    onnx::AttributeProto* value = node->add_attribute();
    value->set_name("value");
    value->set_type(onnx::AttributeProto::TENSOR);
    value->mutable_t()->Swap(*it);
    value->mutable_t()->clear_name();
  }
  const auto first = static_cast<int>(moved - initializers->pointer_begin());
  initializers->DeleteSubrange(first, initializers->size() - first);
  // A node comes after those whose outputs it reads.
  std::rotate(nodes->pointer_begin(), nodes->pointer_begin() + others, nodes->pointer_end());
}

std::string GraphWriter::Finish(const std::string& graph_name, int opset) {
  DropUnread();
  MakeNodesOfFloatConstants();
  onnx::ModelProto model;
  model.set_ir_version(IrVersionOf(opset));
  model.set_producer_name("skiff");
  onnx::OperatorSetIdProto* import = model.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  graphs_.front()->set_name(graph_name);
  model.mutable_graph()->Swap(graphs_.front().get());
  const size_t bytes = model.ByteSizeLong();
  SKIFF_ENFORCE(static_cast<int64_t>(bytes) <= kOnnxFileLimitBytes, kOutOfRange, "the model has ",
                bytes, " bytes, expected at most ", kOnnxFileLimitBytes,
                ": a file of ONNX without external data is one message of protobuf");
  return model.SerializeAsString();
}

}  // namespace skiff::onnx_export
