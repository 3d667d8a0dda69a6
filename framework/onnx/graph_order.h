// The order in which a graph's nodes can be converted.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/onnx/onnx.pb.h"

namespace skiff {

// Returns the indices of the nodes so that each comes after those whose outputs it reads, also in
// its subgraphs; otherwise in the order of the file. `outer`: the names from outside of the graph.
// Throws one Error (kInvalidArgument) for all names without a maker, all names with two makers, and
// all nodes in a cycle.
std::vector<int> OnnxNodeOrder(const onnx::GraphProto& graph, const std::set<std::string>& outer);

}  // namespace skiff
