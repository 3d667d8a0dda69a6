// Nodes of ONNX graphs as ops of a program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/onnx/graph_builder.h"
#include "framework/onnx/import_options.h"
#include "framework/onnx/local_functions.h"
#include "framework/onnx/onnx.pb.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {

// The values that nodes of a graph see: the values of the graph, then the values around it.
class OnnxFrame {
 public:
  // The frame of the file's graph.
  OnnxFrame(const onnx::GraphProto& graph, int64_t opset);
  // The frame of a graph inside of `outer`, which outlives this frame.
  OnnxFrame(const onnx::GraphProto& graph, OnnxFrame* outer);

  int64_t opset = 0;
  // Whether the variables of values get their names.
  bool gives_names = false;

  // Returns nullptr for a name without a value.
  OnnxValuePtr Find(const std::string& name) const;
  bool Contains(const std::string& name) const { return values_.contains(name); }
  // Makes a value of the graph.
  OnnxValuePtr Set(const std::string& name, OnnxValue value);
  // Lets a name be that of a value from elsewhere.
  void Alias(const std::string& name, OnnxValuePtr value);
  int64_t ReaderCount(const std::string& name) const;
  // Returns whether an outer frame has a value with the name.
  bool IsOuter(const std::string& name) const;

 private:
  OnnxFrame* outer_ = nullptr;
  std::map<std::string, OnnxValuePtr> values_;
  std::unordered_map<std::string, int64_t> readers_;
};

// Converts graphs into the current block of the default main program. What can't be converted is
// kept for one Error; values that depend on it are poisoned.
class GraphConverter {
 public:
  // The arguments must outlive the converter.
  GraphConverter(const onnx::ModelProto& model, const std::string& path,
                 const OnnxImportOptions& options, GraphBuilder* builder);

  void AddInitializers(const onnx::GraphProto& graph, OnnxFrame* frame);
  // Throws Error (kInvalidArgument) if the graph is none, and what a file or memory throws.
  void ConvertNodes(const onnx::GraphProto& graph, OnnxFrame* frame);
  // Keeps a problem, of which one text is kept once.
  void Complain(bool is_unsupported, const std::string& problem);
  void ThrowProblems() const;

 private:
  void ConvertNode(const onnx::NodeProto& node, int index, OnnxFrame* frame);
  void ConvertOp(const onnx::NodeProto& node, int index, OnnxFrame* frame);
  void ConvertCall(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                   OnnxFrame* frame);
  void SetOutput(const std::string& name, OnnxValue value, OnnxFrame* frame);

  const std::string& path_;
  std::string folder_;
  const OnnxImportOptions& options_;
  GraphBuilder* builder_;
  LocalFunctions functions_;
  int depth_ = 0;  // of functions
  int64_t inlined_nodes_ = 0;
  std::vector<std::string> problems_;
  std::unordered_set<std::string> known_problems_;
  bool all_are_unsupported_ = true;
};

// Whether a name means something else in a program.
bool IsReservedName(const std::string& name);

}  // namespace skiff
