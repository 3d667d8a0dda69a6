// Variables whose elements decide which memory kernels touch. A kernel checks an index, or counts,
// and then reads the same elements again to follow them. If another thread wrote to them in
// between, the kernel would write where nothing is. So deciding variables are copied where other
// threads may write to them: feeds when a run begins, variables of the scope when a program is
// cloned.
#pragma once

#include <string>
#include <unordered_set>

#include "framework/base/dtype.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

class DecidingVariables {
 public:
  // The attributes of the program's ops must fit the ops' definitions.
  DecidingVariables(const OpRegistry& registry, const Program& program);

  // Returns whether the elements of the variable of this name, a tensor of this dtype, may decide.
  // Whole numbers and bools always may. Floats may if the variable, or a view of the variable, is
  // an input of an op that refuses the input's data (SlotDef::checks_data), or of an op whose
  // output shapes depend on data.
  bool Contains(const std::string& name, DType dtype) const;

 private:
  std::unordered_set<std::string> read_by_data_;  // by such an op, in any block
};

}  // namespace skiff
