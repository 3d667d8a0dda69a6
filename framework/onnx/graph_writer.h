// Writes an ONNX model: nodes, constants, inputs and outputs of a graph and of the graphs inside
// it, in the order in which they are added. Only graph_writer.cc knows the messages of the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "framework/tensor/tensor.h"

namespace skiff::onnx {
class GraphProto;
class NodeProto;
}  // namespace skiff::onnx

namespace skiff::onnx_export {

// A graph that a node runs, such as the body of a Loop. AddNode moves the graph into one node.
using Subgraph = std::shared_ptr<onnx::GraphProto>;

struct NodeAttr {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
               std::vector<std::string>, Tensor, Subgraph>
      value;
};
using NodeAttrs = std::vector<NodeAttr>;

// A dim of a graph's input or output: a number, or a symbol if it is -1; without a symbol, nothing
// is said of it.
struct GraphDim {
  int64_t size = -1;
  std::string symbol = {};
};

// The type of a graph's input or output: a tensor, or a sequence of tensors.
struct GraphType {
  DType dtype = DType::kFloat32;
  // Without a value, nothing is said of the shape.
  std::optional<std::vector<GraphDim>> dims = {};
  bool is_sequence = false;
};

// How much is written.
struct GraphPosition {
  size_t depth = 0;  // of graphs inside graphs
  size_t nodes = 0;  // of the innermost one
};

// A node that makes a value.
struct Producer {
  std::string type;
  std::vector<std::string> inputs;
};

class GraphWriter {
 public:
  GraphWriter();
  ~GraphWriter();
  GraphWriter(const GraphWriter&) = delete;
  GraphWriter& operator=(const GraphWriter&) = delete;

  // Keeps FreshName from returning this name.
  void Reserve(const std::string& name) { taken_.insert(name); }
  // Returns a name that nothing has: the prefix itself, or with a number.
  std::string FreshName(const std::string& prefix);

  // Adds a node whose outputs get fresh names, and returns these. An empty input is an absent one.
  std::vector<std::string> AddNode(const std::string& type, const std::vector<std::string>& inputs,
                                   const NodeAttrs& attrs, size_t outputs = 1);
  GraphPosition position() const;
  // Removes the nodes that were added, and the graphs that were begun, after the position.
  // Constants stay.
  void ReturnTo(const GraphPosition& position);
  // Gives a value another name in the nodes of the innermost graph, from the first one on. Returns
  // false, and changes nothing, if none of them makes the value, or if it is pinned.
  bool Rename(const std::string& value, const std::string& name, size_t first_node);
  // Gives a constant another name, also where nodes read it. Returns false, and changes nothing, if
  // there is none of the first name.
  bool RenameInitializer(const std::string& value, const std::string& name);
  // Keeps the name of a value, which nodes to come may read.
  void Pin(const std::string& value) { pinned_.insert(value); }
  // Returns the node that makes a value; nothing for a constant or an input.
  std::optional<Producer> ProducerOf(const std::string& value) const;

  // Begins a graph inside the innermost graph. The new graph sees the values of the graphs around
  // it, and gets the nodes, inputs and outputs from here on.
  void BeginSubgraph();
  // Ends the innermost graph.
  Subgraph EndSubgraph();

  // Returns the name of a constant with these contents, which isn't a parameter. Small equal
  // constants share one name.
  std::string AddConstant(const Tensor& tensor);
  // Adds a parameter, or another persistable, of this name. The tensor must be on the CPU and
  // plain. Constants are in the outermost graph, where all see them.
  void AddInitializer(const std::string& name, const Tensor& tensor);
  // Of the innermost graph.
  void AddInput(const std::string& name, const GraphType& type);
  // The value may be of a graph outside, or an output already: then a copy is the output. Returns
  // its name.
  std::string AddOutput(const std::string& value, const GraphType& type);

  // Returns the model's bytes; the graph is empty afterwards. Nodes and constants that nothing
  // reads are left out. Throws Error (kOutOfRange) for a model that is larger than a file of
  // protobuf can be.
  std::string Finish(const std::string& graph_name, int opset);

 private:
  onnx::GraphProto& innermost() const { return *graphs_.back(); }
  void DropUnread();
  void MakeNodesOfFloatConstants();

  std::vector<Subgraph> graphs_;  // the outermost one first
  std::set<std::string> taken_;
  std::set<std::string> pinned_;
  std::map<std::string, int64_t> counters_;
  std::map<std::tuple<DType, std::vector<int64_t>, std::string>, std::string> constants_;
  std::set<std::string> float_constants_;  // with dims
};

// Returns ONNX's number of a dtype, which the attribute `to` of Cast and others have.
int64_t OnnxDType(DType dtype);

// Opsets that the export writes.
inline constexpr int kLeastOpset = 13;
inline constexpr int kLargestOpset = 24;

}  // namespace skiff::onnx_export
