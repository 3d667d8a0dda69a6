#include "framework/onnx/local_functions.h"

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr int64_t kLeastOpset = 7;
constexpr int64_t kMostOpset = 24;

using Attributes = std::map<std::string, const onnx::AttributeProto*>;

std::string DomainOf(const std::string& domain) {
  return IsOnnxDomain(domain) ? std::string() : domain;
}

// Puts the attributes that nodes refer to into their place.
void Bind(const Attributes& given, onnx::GraphProto* graph) {
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    google::protobuf::RepeatedPtrField<onnx::AttributeProto> bound;
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.ref_attr_name().empty()) {
        if (attribute.has_g()) Bind(given, attribute.mutable_g());
        for (onnx::GraphProto& inner : *attribute.mutable_graphs()) Bind(given, &inner);
        bound.Add()->Swap(&attribute);
        continue;
      }
      const auto found = given.find(attribute.ref_attr_name());
      if (found == given.end()) continue;
      onnx::AttributeProto* copy = bound.Add();
      *copy = *found->second;
      copy->set_name(attribute.name());
    }
    node.mutable_attribute()->Swap(&bound);
  }
}

}  // namespace

bool IsOnnxDomain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

int64_t OnnxOpset(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                  int64_t fallback) {
  int64_t opset = fallback;
  for (const auto& import : imports) {
    if (IsOnnxDomain(import.domain())) opset = import.version();
  }
  SKIFF_ENFORCE(opset >= kLeastOpset && opset <= kMostOpset, kUnimplemented, "written for opset ",
                opset, " of ONNX's operators, expected ", kLeastOpset, " to ", kMostOpset);
  return opset;
}

LocalFunctions::LocalFunctions(const onnx::ModelProto& model) {
  for (const onnx::FunctionProto& function : model.functions()) {
    const Key key(DomainOf(function.domain()), function.name(), function.overload());
    SKIFF_ENFORCE(functions_.emplace(key, &function).second, kInvalidArgument, "the function \"",
                  function.name(), "\" of the domain \"", function.domain(), "\" is there twice");
  }
}

const onnx::FunctionProto* LocalFunctions::Find(const onnx::NodeProto& call) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(Key(DomainOf(call.domain()), call.op_type(), call.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

onnx::GraphProto LocalFunctions::GraphOf(const onnx::FunctionProto& function,
                                         const onnx::NodeProto& call) {
  Attributes given;
  for (const onnx::AttributeProto& attribute : function.attribute_proto()) {
    given[attribute.name()] = &attribute;
  }
  for (const onnx::AttributeProto& attribute : call.attribute()) {
    SKIFF_ENFORCE(!attribute.has_g() && attribute.graphs_size() == 0, kUnimplemented,
                  "passes a graph to a function");
    given[attribute.name()] = &attribute;
  }
  onnx::GraphProto graph;
  for (const std::string& name : function.input()) graph.add_input()->set_name(name);
  for (const std::string& name : function.output()) graph.add_output()->set_name(name);
  *graph.mutable_node() = function.node();
  Bind(given, &graph);
  return graph;
}

}  // namespace skiff
