// An imported program while compositions in it are replaced (compositions_found.h): the writer and
// the readers of each variable, the constant numbers, and new ops in the places of old ops.
//
// Each variable has one writer, unless a loop or a branch writes it. Variables that a loop or a
// branch uses are kept, as the fetches are, and no composition contains their writers. An op counts
// as a reader only if the fetches need it: the ops of a replaced composition stay in the program,
// since their variables have names of the file, but nobody needs these ops.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/ir/program.h"

namespace skiff {

// Returns a list attribute of whole numbers of either width; none if it isn't set.
std::vector<int64_t> IntsOf(const Op& op, std::string_view name);

class CompositionGraph {
 public:
  // `block` is the root of the default main program.
  CompositionGraph(Block* block, const std::vector<std::string>& fetches);

  // Returns the ops of one of the types that the fetches need, in their order.
  std::vector<Op*> OpsOf(const std::vector<std::string_view>& types) const;
  // Returns the op that writes the variable, if it is of the type; else nullptr.
  const Op* Writer(const std::string& name, std::string_view type) const;
  // The same, of any type.
  const Op* Writer(const std::string& name) const;
  // Returns the ops that read the variable, or its shape; none of them twice.
  std::vector<Op*> ReadersOf(const std::string& name) const;
  // Returns the only reader; nullptr if there are others or the variable is fetched.
  Op* OnlyReader(const std::string& name) const;
  // The same if that reader is of the type.
  Op* OnlyReader(const std::string& name, std::string_view type) const;

  const Var& VarOf(const std::string& name) const { return *block_->FindVar(name); }
  size_t RankOf(const std::string& name) const { return VarOf(name).dims.size(); }
  Variable VariableOf(const std::string& name) const { return {block_, name}; }

  // Returns the elements, if they are constant.
  std::optional<std::vector<double>> ConstantsOf(const std::string& name) const;
  // Returns the number that all elements are, if that is constant.
  std::optional<double> UniformOf(const std::string& name) const;
  // The same for a variable of one element.
  std::optional<double> NumberOf(const std::string& name) const;
  // Returns whether all elements are constant and finite.
  bool IsFiniteConstant(const std::string& name) const;
  // Returns what was broadcast to the shape of the variable, as layers::Where does it.
  std::string Unbroadcast(const std::string& name) const;

  // Puts the ops that `make` appends in the place of `op`. The variable that `make` returns gets
  // the name of the output of `op` in `slot`. Nobody may read another output of `op`.
  void Replace(Op* op, std::string_view slot, const std::function<Variable()>& make);
  // Has `op` read, in a slot, a variable that `make` appends ops for.
  void ReadInstead(Op* op, std::string_view slot, const std::function<Variable()>& make);
  // Brings the ops into their order. To be called once, at the end.
  void Finish();

 private:
  void Link(Op* op);
  // Keeps what an op with sub-blocks uses, captured variables included.
  void KeepUsesOf(size_t position);
  // Count a use of the variable that the fetches need, and the end of such a use.
  void Need(const std::string& name);
  void Release(const std::string& name);
  // Calls `make` and puts its ops before `op`.
  Variable Insert(Op* op, const std::function<Variable()>& make);

  Block* block_;
  std::unordered_set<std::string> kept_;
  std::unordered_map<std::string, Op*> writers_;
  std::unordered_map<std::string, std::vector<Op*>> readers_;
  std::unordered_set<const Op*> needed_;
  std::unordered_map<std::string, int64_t> uses_;  // by ops of needed_, and by the fetches
  std::unordered_map<const Op*, std::vector<const Op*>> before_;
  std::unordered_set<const Op*> replaced_;
  size_t original_count_;
};

}  // namespace skiff
