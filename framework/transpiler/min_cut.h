// Labels each of a set of nodes true or false at the least cost, where a node costs something with
// either label and a pair of nodes costs something if the first is true and the second false.
// That is the smallest cut of a network between a source (true) and a sink (false), found by
// shortest augmenting paths in level graphs (Dinic, Soviet Math. Dokl. 11, 1970).
#pragma once

#include <cstdint>
#include <vector>

namespace skiff {

class MinCut {
 public:
  // More than all other costs of a problem may add up to.
  static constexpr int64_t kForbidden = int64_t{1} << 50;

  // Returns the node's number, counted from 0. Error for a cost outside [0, kForbidden].
  int AddNode(int64_t cost_if_true, int64_t cost_if_false);
  // `cost` is due if node `a` is true and node `b` false. Error as AddNode.
  void AddPairCost(int a, int b, int64_t cost);

  // By node. Of several labellings of the least cost the one with the most nodes true.
  std::vector<bool> Solve() const;

 private:
  struct Node {
    int64_t cost_if_true;
    int64_t cost_if_false;
  };
  struct PairCost {
    int a;
    int b;
    int64_t cost;
  };
  std::vector<Node> nodes_;
  std::vector<PairCost> pairs_;
};

}  // namespace skiff
