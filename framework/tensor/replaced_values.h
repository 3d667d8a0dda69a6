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
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/scope.h"
#include "framework/tensor/tensor.h"

namespace skiff {

class ReplacedValues {
 public:
  // Copies the values of the variables, then calls `write`, which writes others into their storage
  // and advances their versions, as a run and Scope::Assign do. Error: kFailedPrecondition if the
  // scope has replaced values; kNotFound if it lacks a variable; what `write` throws, the values
  // put back as by the destructor.
  ReplacedValues(Scope* scope, const std::vector<std::string>& names,
                 const std::function<void()>& write);
  // Puts the values back, which takes no memory and can't fail on the CPU: but for a variable with
  // LoD, or one that was erased or moved meanwhile. One that can't be put back is erased, so that
  // the next run says that it isn't there, instead of taking another value for its own.
  ~ReplacedValues();
  ReplacedValues(const ReplacedValues&) = delete;
  ReplacedValues& operator=(const ReplacedValues&) = delete;

  // Puts the values back. Does nothing the second time. Error if that fails (kResourceExhausted,
  // kIo); then the rest is still replaced, and another call goes on with it.
  void Restore();
  bool Contains(std::string_view name) const;

 private:
  void PutBack();
  void PutBackOrErase() noexcept;

  Scope* scope_;                                    // nullptr: restored
  std::map<std::string, Tensor, std::less<>> own_;  // not put back yet
};

// Error (kFailedPrecondition) if the variable's value is a replaced one; `what` can't be done then.
void CheckNotReplaced(const Scope& scope, std::string_view name, std::string_view what);

}  // namespace skiff
