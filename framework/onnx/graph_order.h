// The order in which a graph's nodes can be converted, and who reads its values.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/onnx/onnx.pb.h"

namespace skiff {

// Returns the indices of the nodes so that each comes after those whose outputs it reads, also in
// its subgraphs; otherwise in the order of the file. `outer`: the names from outside of the graph.
// Throws one Error (kInvalidArgument) for all names without a maker, all names with two makers, and
// all nodes in a cycle.
std::vector<int> OnnxNodeOrder(const onnx::GraphProto& graph, const std::set<std::string>& outer);

// Returns how often nodes and outputs name each value, also in the subgraphs.
std::unordered_map<std::string, int64_t> OnnxReaderCounts(const onnx::GraphProto& graph);

}  // namespace skiff
