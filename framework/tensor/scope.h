// A scope: named tensors that outlive a run, such as parameters, optimizer states and running
// statistics.
//
// A Scope owns its entries, whose addresses are stable. Whatever moves the storage of an entry
// (another shape, another buffer, Erase) advances the generation; plans hold pointers into the
// scope and compare it. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/api/tensor.h"

namespace skiff {

namespace internal {
class PendingWrites;
}  // namespace internal

// An int64[1] variable: the number of training steps run so far. Random ops depend on it. A run of
// a program with optimizer ops advances it; an evaluation doesn't. Checkpoints hold it.
inline constexpr const char* kStepCounterName = "@SKIFF_STEP@";

class ReplacedValues;

class Scope {
 public:
  using PendingWrites = internal::PendingWrites;

  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Return nullptr if there is no such variable. FindMutable finds reserved entries, too.
  const Tensor* Find(std::string_view name) const;
  Tensor* FindMutable(std::string_view name);
  // Throws Error if there is no such variable.
  const Tensor& Get(std::string_view name) const;
  // Sets the variable to `tensor`, whose buffer both then share. Advances the generation. Throws an
  // Error (kInvalidArgument) for a tensor of bools with a byte other than 0 and 1; then nothing has
  // changed.
  void Set(const std::string& name, Tensor tensor);
  // Like Set, but hides the entry from Find, Get and Names until Reveal is called: it has storage
  // but no values yet. Doesn't advance the generation for a new name, to which nobody can have a
  // pointer.
  void Reserve(const std::string& name, Tensor tensor);
  void Reveal(std::string_view name);
  // Copies values and LoD into the variable's storage, on whatever place that is, if shape, dtype
  // and layout are equal; the generation doesn't change. Otherwise sets the variable to a CPU copy.
  // Throws what Set throws.
  void Assign(const std::string& name, const Tensor& tensor);
  // Removes the variable, if there is one. Advances the generation unless the entry is reserved:
  // only its reserver holds pointers to it.
  void Erase(std::string_view name);
  // Returns all names in ascending order, without reserved entries.
  std::vector<std::string> Names() const;
  // Makes every access to the variable wait for `pending` first, until Set gives it another tensor.
  // `pending` must outlive the scope. Throws Error if there is no such variable.
  void SetPending(std::string_view name, PendingWrites* pending);
  // Makes every access to a variable wait for `work` first, which uses the scope's tensors while
  // its caller goes on; nullptr: there is none. Waits for other work that was set before. `work`
  // must outlive the scope or be forgotten. A Tensor that was copied from the scope before shares
  // its storage and waits for nothing.
  void SetWork(PendingWrites* work);
  // Waits for nothing any more, if `work` is what was set last.
  void ForgetWork(const PendingWrites* work);

  uint64_t generation() const { return generation_; }
  // Returns the number of variables, with reserved ones.
  size_t size() const;
  // Returns the counter of writes to the variable's values, which derived forms compare. Whoever
  // writes through FindMutable must advance it. The address is stable. Throws Error if there is no
  // such variable.
  uint64_t* Version(std::string_view name);
  // Returns the object that currently replaces values of this scope, or nullptr.
  const ReplacedValues* replaced_values() const { return replaced_; }
  bool has_replaced_values() const { return replaced_ != nullptr; }

 private:
  friend class ReplacedValues;
  struct Slot {
    Tensor tensor;
    uint64_t version = 0;
    bool is_reserved = false;
    PendingWrites* pending = nullptr;  // nullptr: no kernel writes it in the background
  };
  Slot& Settled(Slot& slot) const;
  std::map<std::string, std::unique_ptr<Slot>, std::less<>> slots_;
  uint64_t generation_ = 0;
  PendingWrites* work_ = nullptr;
  const ReplacedValues* replaced_ = nullptr;
};

}  // namespace skiff
