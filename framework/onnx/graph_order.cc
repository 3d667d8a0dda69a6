#include "framework/onnx/graph_order.h"

#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"

namespace skiff {
namespace {

using Names = std::unordered_set<std::string>;

constexpr size_t kMostProblems = 50;

std::string Named(const onnx::GraphProto& graph, int node) {
  return StrCat(graph.node(node).op_type(), " \"", graph.node(node).name(), "\" (node ", node, ")");
}

void CollectReads(const onnx::NodeProto& node, Names* reads);

// Adds what a subgraph reads from outside of itself.
void CollectReads(const onnx::GraphProto& graph, Names* reads) {
  Names inner;
  for (const auto& input : graph.input()) inner.insert(input.name());
  for (const auto& tensor : graph.initializer()) inner.insert(tensor.name());
  Names all;
  for (const auto& node : graph.node()) {
    CollectReads(node, &all);
    inner.insert(node.output().begin(), node.output().end());
  }
  for (const auto& output : graph.output()) all.insert(output.name());
  for (const std::string& name : all) {
    if (!inner.contains(name)) reads->insert(name);
  }
}

void CollectReads(const onnx::NodeProto& node, Names* reads) {
  for (const std::string& name : node.input()) {
    if (!name.empty()) reads->insert(name);
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) CollectReads(attribute.g(), reads);
    for (const auto& graph : attribute.graphs()) CollectReads(graph, reads);
  }
}

void CountReaders(const onnx::GraphProto& graph, std::unordered_map<std::string, int64_t>* counts) {
  for (const auto& output : graph.output()) ++(*counts)[output.name()];
  for (const auto& node : graph.node()) {
    for (const std::string& name : node.input()) ++(*counts)[name];
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) CountReaders(attribute.g(), counts);
      for (const auto& inner : attribute.graphs()) CountReaders(inner, counts);
    }
  }
}

class Sorter {
 public:
  Sorter(const onnx::GraphProto& graph, const std::function<bool(const std::string&)>& is_outer)
      : graph_(graph), is_outer_(is_outer) {
    std::unordered_set<std::string> own;
    for (const auto& input : graph.input()) AddGiven(input.name(), "input", &own);
    own.clear();
    for (const auto& tensor : graph.initializer()) AddGiven(tensor.name(), "initializer", &own);
  }

  std::vector<int> Sort() {
    FindMakers();
    FindReaders();
    std::vector<int> order;
    // The first node of the file that is ready.
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (waits_for_[static_cast<size_t>(i)] == 0) ready.push(i);
    }
    while (!ready.empty()) {
      const int node = ready.top();
      ready.pop();
      order.push_back(node);
      for (const int reader : readers_[static_cast<size_t>(node)]) {
        if (--waits_for_[static_cast<size_t>(reader)] == 0) ready.push(reader);
      }
    }
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (waits_for_[static_cast<size_t>(i)] > 0) {
        Complain(Named(graph_, i), " is in a cycle of nodes, or behind one");
      }
    }
    if (problems_.empty()) return order;
    std::string text = StrCat("the graph has ", problem_count_, " mistakes:");
    for (const std::string& problem : problems_) text += "\n  " + problem;
    Throw(ErrorCode::kInvalidArgument, text);
  }

 private:
  template <typename... Args>
  void Complain(const Args&... args) {
    ++problem_count_;
    if (problems_.size() < kMostProblems) problems_.push_back(StrCat(args...));
  }

  void AddGiven(const std::string& name, std::string_view what, Names* own) {
    if (name.empty()) Complain("an ", what, " has no name");
    if (!own->insert(name).second) Complain(what, " \"", name, "\" is there twice");
    given_.insert(name);
  }

  bool IsGiven(const std::string& name) const { return given_.contains(name) || is_outer_(name); }

  void FindMakers() {
    for (int i = 0; i < graph_.node_size(); ++i) {
      for (const std::string& name : graph_.node(i).output()) {
        if (name.empty()) continue;
        if (IsGiven(name) || !makers_.emplace(name, i).second) {
          Complain("\"", name, "\", which ", Named(graph_, i), " makes, is there already");
        }
      }
    }
  }

  void FindReaders() {
    readers_.resize(static_cast<size_t>(graph_.node_size()));
    waits_for_.resize(static_cast<size_t>(graph_.node_size()));
    for (int i = 0; i < graph_.node_size(); ++i) {
      Names reads;
      CollectReads(graph_.node(i), &reads);
      for (const std::string& name : reads) {
        const auto maker = makers_.find(name);
        if (maker != makers_.end()) {
          readers_[static_cast<size_t>(maker->second)].push_back(i);
          ++waits_for_[static_cast<size_t>(i)];
        } else if (!IsGiven(name)) {
          Complain("\"", name, "\", which ", Named(graph_, i), " reads, is made by nothing");
        }
      }
    }
    for (const auto& output : graph_.output()) {
      if (!makers_.contains(output.name()) && !IsGiven(output.name())) {
        Complain("the output \"", output.name(), "\" is made by nothing");
      }
    }
  }

  const onnx::GraphProto& graph_;
  const std::function<bool(const std::string&)>& is_outer_;
  Names given_;
  std::unordered_map<std::string, int> makers_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> waits_for_;
  std::vector<std::string> problems_;
  size_t problem_count_ = 0;
};

}  // namespace

std::vector<int> OnnxNodeOrder(const onnx::GraphProto& graph,
                               const std::function<bool(const std::string&)>& is_outer) {
  return Sorter(graph, is_outer).Sort();
}

int64_t OnnxNodeCount(const onnx::GraphProto& graph) {
  int64_t count = graph.node_size();
  for (const auto& node : graph.node()) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) count += OnnxNodeCount(attribute.g());
      for (const auto& inner : attribute.graphs()) count += OnnxNodeCount(inner);
    }
  }
  return count;
}

std::unordered_map<std::string, int64_t> OnnxReaderCounts(const onnx::GraphProto& graph) {
  std::unordered_map<std::string, int64_t> counts;
  CountReaders(graph, &counts);
  return counts;
}

}  // namespace skiff
