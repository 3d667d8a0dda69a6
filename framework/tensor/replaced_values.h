// Temporarily replaces the values of variables of a scope, for example parameters by their averages
// during an evaluation.
//
//   {
//     const ReplacedValues replaced(&scope, {"w"}, [&] { scope.Assign("w", average); });
//     …                                                   // w is the average
//   }                                                     // w has its own value again, bit for bit
//
// While values are replaced, the executor refuses training steps and runs that write a replaced
// variable, and checkpoints neither save nor load replaced variables (kFailedPrecondition). So no
// checkpoint can hold a replaced value. Any other write to these variables is lost when the object
// puts the original values back. The storage of the variables doesn't move, so plans stay valid.
//
// The scope must outlive the object. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/api/tensor.h"
#include "framework/tensor/scope.h"

namespace skiff {

class ReplacedValues {
 public:
  // Saves copies of the variables' values, then calls `write`. It must write other values into the
  // storage of the variables and advance the versions, as Scope::Assign and runs do. If `write`
  // throws, restores the values as the destructor does and rethrows. Throws Error
  // (kFailedPrecondition) if the scope already has replaced values, and (kNotFound) if the scope
  // lacks one of the variables.
  ReplacedValues(Scope* scope, const std::vector<std::string>& names,
                 const std::function<void()>& write);
  // Restores the values. On the CPU this allocates nothing and can't fail, except for a variable
  // that has LoD, or that was erased or moved since. Erases a variable that can't be restored, so
  // that the next run reports the variable as missing instead of using a wrong value.
  ~ReplacedValues();
  ReplacedValues(const ReplacedValues&) = delete;
  ReplacedValues& operator=(const ReplacedValues&) = delete;

  // Restores the values; does nothing if that has been done. Throws Error (kResourceExhausted, kIo)
  // on failure. The remaining variables then stay replaced, and another call continues with them.
  void Restore();
  bool Contains(std::string_view name) const;
  // Throws Error (kFailedPrecondition), starting with `what`, if the variable has a replaced value
  // in the scope.
  static void CheckNotReplaced(const Scope& scope, std::string_view name, std::string_view what);

 private:
  void PutBack();
  void PutBackOrErase() noexcept;

  Scope* scope_;                                    // nullptr once restored
  std::map<std::string, Tensor, std::less<>> own_;  // values not restored yet
};

}  // namespace skiff
