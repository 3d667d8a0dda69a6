// Variables of a scope that hold other values than their own for a while: averaged parameters
// during an evaluation, say.
//
//   {
//     const ReplacedValues replaced(&scope, {"w"}, [&] { scope.Assign("w", average); });
//     …                                                   // w is the average
//   }                                                     // w is its own value again, bit for bit
//
// Meanwhile the executor refuses training steps and runs that write one of these variables, and
// none of them is saved into a checkpoint or loaded (kFailedPrecondition). So their own values
// can't get lost: checkpoints hold nothing else, and what other code writes into the variables is
// gone when they are put back. Storage stays where it is, so plans stay valid.
//
// The scope outlives the object. Not thread-safe, as the scope.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/tensor/scope.h"
#include "framework/tensor/tensor.h"

namespace skiff {

class ReplacedValues {
 public:
  // Copies the values of the variables, then calls `write`, which writes others into their storage
  // and advances their versions, as a run and Scope::Assign do. Error: kFailedPrecondition if the
  // scope has replaced values; kNotFound if it lacks a variable; what `write` throws, the values
  // put back.
  ReplacedValues(Scope* scope, const std::vector<std::string>& names,
                 const std::function<void()>& write);
  ~ReplacedValues() { Restore(); }
  ReplacedValues(const ReplacedValues&) = delete;
  ReplacedValues& operator=(const ReplacedValues&) = delete;

  // Puts the values back. Does nothing the second time.
  void Restore();
  bool Contains(std::string_view name) const;

 private:
  void PutBack();

  Scope* scope_;  // nullptr: restored
  std::vector<std::pair<std::string, Tensor>> own_;
};

// Error (kFailedPrecondition) if the variable's value is a replaced one; `what` can't be done then.
void CheckNotReplaced(const Scope& scope, std::string_view name, std::string_view what);

}  // namespace skiff
