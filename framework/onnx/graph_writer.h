// Writes an ONNX model: nodes, constants, inputs and outputs of one graph, in the order in which
// they are added. Only graph_writer.cc knows the messages of the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

struct NodeAttr {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
               std::vector<std::string>, Tensor>
      value;
};
using NodeAttrs = std::vector<NodeAttr>;

// A dim of a graph's input or output: a number, or a symbol if it is -1; without a symbol, nothing
// is said of it.
struct GraphDim {
  int64_t size = -1;
  std::string symbol = {};
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
  size_t node_count() const;
  // Takes the nodes away again that were added after the first `count`.
  void RemoveNodesAfter(size_t count);
  // Gives a value another name in the nodes from the first one on. Returns false, and changes
  // nothing, if none of them makes the value.
  bool Rename(const std::string& value, const std::string& name, size_t first_node);

  // Returns the name of a constant with these contents, which isn't a parameter. Equal small ones
  // are one.
  std::string AddConstant(const Tensor& tensor);
  // Adds a parameter, or another persistable, of this name. The tensor must be on the CPU and
  // plain.
  void AddInitializer(const std::string& name, const Tensor& tensor);
  void AddInput(const std::string& name, DType dtype, const std::vector<GraphDim>& dims);
  void AddOutput(const std::string& name, DType dtype, const std::vector<GraphDim>& dims);

  // Returns the model's bytes; the graph is empty afterwards. Constants that no node reads, and
  // that aren't outputs, are left out. Throws Error (kOutOfRange) for a model that is larger than a
  // file of protobuf can be.
  std::string Finish(const std::string& graph_name, int opset);

 private:
  void DropUnreadConstants();
  void MakeNodesOfFloatConstants();

  std::unique_ptr<onnx::GraphProto> graph_;
  std::set<std::string> taken_;
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
