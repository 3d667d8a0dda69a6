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

// A value that a graph names. Numbers that are known become a part of the program when a node asks
// for their variable.
struct OnnxValue {
  Variable variable = {};                         // undefined: not in the program so far
  std::shared_ptr<const Tensor> known = nullptr;  // nullptr: nobody knows the numbers
  // Of whole numbers that aren't all known, such as the dims of a batch: -1 for the others.
  std::optional<std::vector<int64_t>> partly_known = {};
  bool is_weight = false;    // an initializer, which may change in a training
  bool is_poisoned = false;  // its node isn't supported
};

// Makes variables in the root block of the default main program. Not thread-safe.
class GraphBuilder {
 public:
  GraphBuilder();

  // Returns the variable of a value, and makes it if there is none: a parameter, a constant, or a
  // persistable for many numbers that aren't trained.
  Variable Materialise(const std::string& name, OnnxValue* value);
  // Marks the ops that a node appends from now on.
  void BeginNode();
  // Computes the node's ops that follow from constants and known shapes, and sets the numbers in
  // `outputs`. If each of `outputs` is then known, removes the node's ops and their variables.
  void Fold(const std::vector<OnnxValue*>& outputs);
  // Names the ops since BeginNode as made by line `node` of `file`.
  void MarkSites(const std::string& file, int node);

  // Lets a variable have another name in the finished program, unless it has one already. Returns
  // whether the variable has that name now.
  bool Rename(const Variable& variable, const std::string& name);
  // Gives the variables their names, in all ops.
  void ApplyNames();
  // Hands the weights over, by their final names.
  void MoveWeightsTo(Scope* scope);

 private:
  Variable MakePersistable(const std::string& name, const Tensor& value, bool is_parameter);
  void FoldOp(const Op& op);
  void RemoveNodeOps();

  Block* block_;
  size_t first_op_ = 0;   // of the node
  size_t first_var_ = 0;  // of the node
  std::vector<OnnxValue*> made_in_node_;
  // By the names in the unfinished program.
  std::unordered_map<std::string, std::shared_ptr<const Tensor>> known_;
  // Variables of removed ops. All of them go at once at the end: each removal looks at all others.
  std::vector<std::string> dropped_;
  std::map<std::string, Tensor> weights_;
  std::set<const void*> buffers_;  // of weights
  std::map<std::string, std::string> names_;
  std::set<std::string> taken_;
};

}  // namespace skiff
