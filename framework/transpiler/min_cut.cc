#include "framework/transpiler/min_cut.h"

#include <algorithm>
#include <limits>

#include "framework/base/error.h"

namespace skiff {
namespace {

class Network {
 public:
  explicit Network(size_t nodes) : edges_from_(nodes), level_(nodes), next_edge_(nodes) {}

  void AddEdge(int from, int to, int64_t capacity) {
    if (capacity == 0) return;
    edges_from_[static_cast<size_t>(from)].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_from_[static_cast<size_t>(to)].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  void Saturate(int source, int sink) {
    while (FindLevels(source, sink)) {
      std::ranges::fill(next_edge_, size_t{0});
      while (Augment(source, sink, std::numeric_limits<int64_t>::max()) > 0) {
      }
    }
  }

  // Which nodes have a way to `sink` that isn't saturated.
  std::vector<bool> CanReach(int sink) const {
    std::vector<bool> reaches(edges_from_.size());
    reaches[static_cast<size_t>(sink)] = true;
    std::vector<int> queue{sink};
    for (size_t i = 0; i < queue.size(); ++i) {
      for (const size_t edge : edges_from_[static_cast<size_t>(queue[i])]) {
        const auto from = static_cast<size_t>(edges_[edge].to);
        if (reaches[from] || edges_[Reverse(edge)].capacity == 0) continue;
        reaches[from] = true;
        queue.push_back(edges_[edge].to);
      }
    }
    return reaches;
  }

 private:
  struct Edge {
    int to;
    int64_t capacity;  // what is left of it
  };

  // An edge and the one against it are neighbours.
  static size_t Reverse(size_t edge) { return edge ^ 1; }

  // Edges from the source, by node; false if the sink can't be reached.
  bool FindLevels(int source, int sink) {
    std::ranges::fill(level_, -1);
    level_[static_cast<size_t>(source)] = 0;
    std::vector<int> queue{source};
    for (size_t i = 0; i < queue.size(); ++i) {
      const auto node = static_cast<size_t>(queue[i]);
      for (const size_t edge : edges_from_[node]) {
        const auto to = static_cast<size_t>(edges_[edge].to);
        if (level_[to] >= 0 || edges_[edge].capacity == 0) continue;
        level_[to] = level_[node] + 1;
        queue.push_back(edges_[edge].to);
      }
    }
    return level_[static_cast<size_t>(sink)] >= 0;
  }

  // Sends up to `limit` along one way through the levels; returns how much.
  int64_t Augment(int from, int sink, int64_t limit) {
    if (from == sink) return limit;
    const auto node = static_cast<size_t>(from);
    for (size_t& i = next_edge_[node]; i < edges_from_[node].size(); ++i) {
      const size_t index = edges_from_[node][i];
      Edge& edge = edges_[index];
      if (edge.capacity == 0 || level_[static_cast<size_t>(edge.to)] != level_[node] + 1) continue;
      const int64_t sent = Augment(edge.to, sink, std::min(limit, edge.capacity));
      if (sent == 0) continue;
      edge.capacity -= sent;
      edges_[Reverse(index)].capacity += sent;
      return sent;
    }
    return 0;
  }

  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> edges_from_;
  std::vector<int> level_;
  std::vector<size_t> next_edge_;  // by node, the first that may still lead to the sink
};

void CheckCost(int64_t cost) {
  SKIFF_ENFORCE(cost >= 0 && cost <= MinCut::kForbidden, kInvalidArgument, "a cost of ", cost,
                ": expected 0 to ", MinCut::kForbidden);
}

}  // namespace

int MinCut::AddNode(int64_t cost_if_true, int64_t cost_if_false) {
  CheckCost(cost_if_true);
  CheckCost(cost_if_false);
  nodes_.push_back({cost_if_true, cost_if_false});
  return static_cast<int>(nodes_.size()) - 1;
}

void MinCut::AddPairCost(int a, int b, int64_t cost) {
  CheckCost(cost);
  pairs_.push_back({a, b, cost});
}

std::vector<bool> MinCut::Solve() const {
  const int count = static_cast<int>(nodes_.size());
  const int source = count;
  const int sink = count + 1;
  Network network(nodes_.size() + 2);
  for (int i = 0; i < count; ++i) {
    network.AddEdge(source, i, nodes_[static_cast<size_t>(i)].cost_if_false);
    network.AddEdge(i, sink, nodes_[static_cast<size_t>(i)].cost_if_true);
  }
  for (const PairCost& pair : pairs_) network.AddEdge(pair.a, pair.b, pair.cost);
  network.Saturate(source, sink);
  std::vector<bool> labels = network.CanReach(sink);
  labels.resize(nodes_.size());
  labels.flip();
  return labels;
}

}  // namespace skiff
