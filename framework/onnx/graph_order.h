// The order in which a graph's nodes can be converted, and the number of reads of each value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/onnx/onnx.pb.h"

namespace skiff {

// Returns the indices of the nodes: the maker of a value before its readers, otherwise the order of
// the file. The reads of a subgraph count as reads of its node. `is_outer` says whether a name is
// from outside of the graph. Throws one Error (kInvalidArgument) for all names without a maker, all
// names with two makers, and all nodes in a cycle.
std::vector<int> OnnxNodeOrder(const onnx::GraphProto& graph,
                               const std::function<bool(const std::string&)>& is_outer);

// Returns the number of nodes, the nodes of subgraphs included.
int64_t OnnxNodeCount(const onnx::GraphProto& graph);

// Returns how often nodes and outputs name each value, also in the subgraphs.
std::unordered_map<std::string, int64_t> OnnxReaderCounts(const onnx::GraphProto& graph);

}  // namespace skiff
