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
};

void SetValueInfo(const std::string& name, DType dtype, const std::vector<GraphDim>& dims,
                  onnx::ValueInfoProto* info) {
  info->set_name(name);
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(static_cast<int32_t>(OnnxDType(dtype)));
  auto* shape = type->mutable_shape();
  for (const GraphDim& dim : dims) {
    auto* proto = shape->add_dim();
    if (dim.size >= 0) {
      proto->set_dim_value(dim.size);
    } else if (!dim.symbol.empty()) {
      proto->set_dim_param(dim.symbol);
    }
  }
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

GraphWriter::GraphWriter() : graph_(std::make_unique<onnx::GraphProto>()) {}
GraphWriter::~GraphWriter() = default;

std::string GraphWriter::FreshName(const std::string& prefix) {
  std::string name = prefix;
  while (!taken_.insert(name).second) name = StrCat(prefix, "_", ++counters_[prefix]);
  return name;
}

std::vector<std::string> GraphWriter::AddNode(const std::string& type,
                                              const std::vector<std::string>& inputs,
                                              const NodeAttrs& attrs, size_t outputs) {
  onnx::NodeProto* node = graph_->add_node();
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

size_t GraphWriter::node_count() const { return static_cast<size_t>(graph_->node_size()); }

void GraphWriter::RemoveNodesAfter(size_t count) {
  const int first = static_cast<int>(count);
  graph_->mutable_node()->DeleteSubrange(first, graph_->node_size() - first);
}

bool GraphWriter::Rename(const std::string& value, const std::string& name, size_t first_node) {
  bool is_made = false;
  for (auto i = static_cast<int>(first_node); i < graph_->node_size(); ++i) {
    for (std::string& output : *graph_->mutable_node(i)->mutable_output()) {
      if (output != value) continue;
      output = name;
      is_made = true;
    }
  }
  if (!is_made) return false;
  for (auto i = static_cast<int>(first_node); i < graph_->node_size(); ++i) {
    for (std::string& input : *graph_->mutable_node(i)->mutable_input()) {
      if (input == value) input = name;
    }
  }
  return true;
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
  onnx::TensorProto* proto = graph_->add_initializer();
  proto->set_name(name);
  SetTensor(tensor, proto);
}

void GraphWriter::AddInput(const std::string& name, DType dtype,
                           const std::vector<GraphDim>& dims) {
  SetValueInfo(name, dtype, dims, graph_->add_input());
}

void GraphWriter::AddOutput(const std::string& name, DType dtype,
                            const std::vector<GraphDim>& dims) {
  SetValueInfo(name, dtype, dims, graph_->add_output());
}

void GraphWriter::DropUnreadConstants() {
  std::set<std::string> read;
  for (const onnx::NodeProto& node : graph_->node()) {
    read.insert(node.input().begin(), node.input().end());
  }
  for (const onnx::ValueInfoProto& output : graph_->output()) read.insert(output.name());
  auto* constants = graph_->mutable_initializer();
  const auto unread = std::stable_partition(
      constants->pointer_begin(), constants->pointer_end(),
      [&read](const onnx::TensorProto* constant) { return read.contains(constant->name()); });
  constants->DeleteSubrange(static_cast<int>(unread - constants->pointer_begin()),
                            static_cast<int>(constants->pointer_end() - unread));
}

void GraphWriter::MakeNodesOfFloatConstants() {
  auto* initializers = graph_->mutable_initializer();
  auto* nodes = graph_->mutable_node();
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
  DropUnreadConstants();
  MakeNodesOfFloatConstants();
  onnx::ModelProto model;
  model.set_ir_version(IrVersionOf(opset));
  model.set_producer_name("skiff");
  onnx::OperatorSetIdProto* import = model.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  graph_->set_name(graph_name);
  model.mutable_graph()->Swap(graph_.get());
  const size_t bytes = model.ByteSizeLong();
  SKIFF_ENFORCE(static_cast<int64_t>(bytes) <= kOnnxFileLimitBytes, kOutOfRange, "the model has ",
                bytes, " bytes, expected at most ", kOnnxFileLimitBytes,
                ": a file of ONNX without external data is one message of protobuf");
  return model.SerializeAsString();
}

}  // namespace skiff::onnx_export
