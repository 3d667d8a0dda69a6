// The values of an ONNX graph while its program is made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace skiff {

struct OnnxValue;
// Graphs hand their values to the graphs of nodes and functions inside.
using OnnxValuePtr = std::shared_ptr<OnnxValue>;

// Dims, with -1 for a dim that only a run knows. No other number is below 0.
using PartlyKnownDims = std::vector<int64_t>;

// A value that a graph names. Numbers that are known become a part of the program when a node asks
// for their variable.
struct OnnxValue {
  std::string name = {};                          // in the file
  Variable variable = {};                         // undefined: not in the program so far
  std::shared_ptr<const Tensor> known = nullptr;  // nullptr: nobody knows the numbers
  // Of a vector or a scalar of dims that aren't all known.
  std::optional<PartlyKnownDims> known_dims = {};
  std::optional<std::vector<OnnxValuePtr>> items = {};  // of a sequence, which has nothing else
  bool is_weight = false;    // an initializer, which may change in a training
  bool is_poisoned = false;  // its node isn't supported
  int64_t readers = 0;       // how often nodes and outputs name an initializer
};

// Returns a value that has a variable.
OnnxValuePtr ValueOf(const Variable& variable);

// Makes variables in the default main program: variables of nodes in the current block, constants
// and weights in the root block, where all blocks see them. Not thread-safe.
class GraphBuilder {
 public:
  GraphBuilder();

  // Where a node begins.
  struct NodeStart {
    Block* block = nullptr;
    size_t op = 0;
    size_t var = 0;
    size_t root_op = 0;
    size_t root_var = 0;
    size_t block_count = 0;
  };

  // Returns the variable of a value, and makes it if there is none: a parameter, a constant, or a
  // persistable for many numbers that aren't trained.
  Variable Materialise(OnnxValue* value);
  // Makes a variable of the numbers of a value in any case.
  Variable Make(const OnnxValue& value);
  // Returns the numbers of a variable that follow from constants, nullptr for others.
  const Tensor* Known(const std::string& variable) const;
  // Marks the ops that a node appends from now on.
  NodeStart BeginNode();
  // Computes the node's ops that follow from constants and known shapes, and sets the numbers in
  // `outputs`. If each of `outputs` is then known, removes the node's ops and their variables. The
  // node has no graphs inside.
  void Fold(const NodeStart& start, const std::vector<OnnxValue*>& outputs);
  // Names the node's ops as made by line `node` of `file`. Ops of nodes in its graphs have names
  // already.
  void MarkSites(const NodeStart& start, const std::string& file, int node);

  // Reserves a name for a variable: no other variable gets it.
  void Reserve(const std::string& name);
  // Gives a variable of the root block a name for the finished program. Does nothing if the
  // variable has got a name before, or if another variable has the name. Returns whether the
  // variable has the name now.
  bool Rename(const Variable& variable, const std::string& name);
  // Gives the variables their names, in all ops.
  void ApplyNames();
  // Hands the weights over, by their final names.
  void MoveWeightsTo(Scope* scope);

 private:
  Variable MakePersistable(const std::string& name, const Tensor& value, bool is_parameter);
  void FoldOp(const Block& block, const Op& op);
  void RemoveOps(Block* block, size_t first_op, size_t first_var);
  void RemoveNode(const NodeStart& start);

  Block* root_;
  std::vector<OnnxValue*> made_in_node_;  // constants
  // By the names in the unfinished program.
  std::unordered_map<std::string, std::shared_ptr<const Tensor>> known_;
  // Variables of removed ops. All of them go at once at the end: each removal looks at all others.
  std::map<Block*, std::vector<std::string>> dropped_;
  std::map<std::string, Tensor> weights_;
  std::set<const void*> buffers_;  // of weights
  std::map<std::string, std::string> names_;
  std::set<std::string> taken_;
  std::set<std::string> reserved_;  // each has a variable until the names are applied
};

}  // namespace skiff
