// The functions of an ONNX file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "framework/onnx/onnx.pb.h"

namespace skiff {

// Whether these are ONNX's own operators.
bool IsOnnxDomain(const std::string& domain);

// Returns the version of ONNX's own operators in a list of imports, `fallback` if it has none.
// Throws Error (kUnimplemented) for a version that the import doesn't know.
int64_t OnnxOpset(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                  int64_t fallback);

class LocalFunctions {
 public:
  // The model outlives this. Throws Error (kInvalidArgument) for two functions of one name.
  explicit LocalFunctions(const onnx::ModelProto& model);

  // Returns the function that a node calls, nullptr if it calls none.
  const onnx::FunctionProto* Find(const onnx::NodeProto& call) const;

  // Returns the graph of a call: the function's nodes, where an attribute that refers to one of the
  // function has the value of the call, or else the function's default. An attribute that has
  // neither isn't there. Throws Error (kUnimplemented) if the call passes a graph.
  static onnx::GraphProto GraphOf(const onnx::FunctionProto& function, const onnx::NodeProto& call);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  std::map<Key, const onnx::FunctionProto*> functions_;
};

}  // namespace skiff
