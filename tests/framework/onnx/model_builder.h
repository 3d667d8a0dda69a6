// Small models of ONNX, made of messages.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/onnx/onnx.pb.h"

namespace skiff {

// Adds to a graph.
class GraphEditor {
 public:
  explicit GraphEditor(onnx::GraphProto* graph) : graph_(*graph) {}

  // -1 is a dim that only a run knows.
  void Input(const std::string& name, const std::vector<int64_t>& dims,
             int32_t type = onnx::TensorProto::FLOAT) {
    Describe(name, dims, type, graph_.add_input());
  }
  void Output(const std::string& name, const std::vector<int64_t>& dims,
              int32_t type = onnx::TensorProto::FLOAT) {
    Describe(name, dims, type, graph_.add_output());
  }
  // Names of a graph inside another one, which may leave the types open.
  void Inputs(const std::vector<std::string>& names) {
    for (const std::string& name : names) graph_.add_input()->set_name(name);
  }
  void Outputs(const std::vector<std::string>& names) {
    for (const std::string& name : names) graph_.add_output()->set_name(name);
  }

  onnx::TensorProto* Floats(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<float>& values) {
    onnx::TensorProto* tensor = Tensor(name, dims, onnx::TensorProto::FLOAT);
    for (const float value : values) tensor->add_float_data(value);
    return tensor;
  }
  onnx::TensorProto* Ints(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto* tensor =
        Tensor(name, {static_cast<int64_t>(values.size())}, onnx::TensorProto::INT64);
    for (const int64_t value : values) tensor->add_int64_data(value);
    return tensor;
  }
  // Scalars.
  onnx::TensorProto* Int(const std::string& name, int64_t value) {
    onnx::TensorProto* tensor = Tensor(name, {}, onnx::TensorProto::INT64);
    tensor->add_int64_data(value);
    return tensor;
  }
  onnx::TensorProto* Bool(const std::string& name, bool value) {
    onnx::TensorProto* tensor = Tensor(name, {}, onnx::TensorProto::BOOL);
    tensor->add_int32_data(value ? 1 : 0);
    return tensor;
  }

  onnx::NodeProto* Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    onnx::NodeProto* node = graph_.add_node();
    node->set_op_type(op);
    node->set_name(op + "_of_" + outputs.at(0));
    for (const std::string& name : inputs) node->add_input(name);
    for (const std::string& name : outputs) node->add_output(name);
    return node;
  }

 private:
  static void Describe(const std::string& name, const std::vector<int64_t>& dims, int32_t type,
                       onnx::ValueInfoProto* value) {
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const int64_t dim : dims) {
      auto* entry = tensor->mutable_shape()->add_dim();
      if (dim < 0) {
        entry->set_dim_param("N");
      } else {
        entry->set_dim_value(dim);
      }
    }
  }
  onnx::TensorProto* Tensor(const std::string& name, const std::vector<int64_t>& dims,
                            int32_t type) {
    onnx::TensorProto* tensor = graph_.add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    return tensor;
  }

  onnx::GraphProto& graph_;
};

// Makes a model of one graph, of IR 8 and opset 17.
class ModelBuilder {
 public:
  ModelBuilder() {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
  }

  onnx::GraphProto& graph() { return *model.mutable_graph(); }
  GraphEditor edit() { return GraphEditor(&graph()); }

  void Input(const std::string& name, const std::vector<int64_t>& dims,
             int32_t type = onnx::TensorProto::FLOAT) {
    edit().Input(name, dims, type);
  }
  void Output(const std::string& name, const std::vector<int64_t>& dims,
              int32_t type = onnx::TensorProto::FLOAT) {
    edit().Output(name, dims, type);
  }
  onnx::TensorProto* Floats(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<float>& values) {
    return edit().Floats(name, dims, values);
  }
  onnx::TensorProto* Ints(const std::string& name, const std::vector<int64_t>& values) {
    return edit().Ints(name, values);
  }
  onnx::NodeProto* Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    return edit().Node(op, inputs, outputs);
  }

  onnx::ModelProto model;
};

inline void SetInt(const std::string& name, int64_t value, onnx::NodeProto* node) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

inline void SetString(const std::string& name, const std::string& value, onnx::NodeProto* node) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

inline void SetInts(const std::string& name, const std::vector<int64_t>& values,
                    onnx::NodeProto* node) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

// Gives a node a graph as an attribute.
inline GraphEditor AddGraph(const std::string& name, onnx::NodeProto* node) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  return GraphEditor(attribute->mutable_g());
}

// A classifier: x [N, 2] times w, plus b, relu, softmax.
inline ModelBuilder SmallModel() {
  ModelBuilder builder;
  builder.Input("x", {-1, 2});
  builder.Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  builder.Floats("b", {3}, {0.5f, 0, -100});
  builder.Node("MatMul", {"x", "w"}, {"product"});
  builder.Node("Add", {"product", "b"}, {"sum"});
  builder.Node("Relu", {"sum"}, {"y"});
  builder.Output("y", {-1, 3});
  return builder;
}

}  // namespace skiff
