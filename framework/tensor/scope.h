// Named tensors that outlive a run: parameters, optimizer states, running statistics.
//
// Not thread-safe. Slots have stable addresses. Whatever moves the storage of a slot (a new shape,
// a new buffer, erase) advances the generation; plans that hold pointers into the scope compare it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/pending_writes.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// int64[1]: training steps run so far. Random ops draw by it; a run of a program with optimizer ops
// advances it, evaluation does not. Checkpoints hold it.
inline constexpr const char* kStepCounterName = "@SKIFF_STEP@";

class ReplacedValues;

class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // nullptr if there is none.
  const Tensor* Find(std::string_view name) const;
  Tensor* FindMutable(std::string_view name);
  // Error if there is none.
  const Tensor& Get(std::string_view name) const;
  // Puts a tensor in the slot; the buffer is shared with the caller's. Advances the generation.
  void Set(const std::string& name, Tensor tensor);
  // A slot that is to be written through FindMutable for the first time: Find, Get and Names don't
  // show it before Reveal. Advances the generation.
  void Reserve(const std::string& name, Tensor tensor);
  void Reveal(std::string_view name);
  // Copies values and LoD into the slot's storage, wherever that is, if shape, dtype and layout are
  // equal (the generation stays), else puts a CPU copy there.
  void Assign(const std::string& name, const Tensor& tensor);
  // Does nothing if there is none. Advances the generation, but for a reserved slot: only who
  // reserved it holds pointers to it.
  void Erase(std::string_view name);
  // In ascending order.
  std::vector<std::string> Names() const;
  // From now on until the slot gets another tensor, whatever looks it up or changes it waits for
  // `pending` first, which outlives the scope. Error if there is no such slot.
  void SetPending(std::string_view name, PendingWrites* pending);

  uint64_t generation() const { return generation_; }
  // Counts the writes to a slot's values: forms derived from them compare it. Whoever writes
  // through FindMutable advances it. The address is stable. Error if there is no such slot.
  uint64_t* Version(std::string_view name);
  // The variables that hold other values than their own for the moment; nullptr: there are none.
  const ReplacedValues* replaced_values() const { return replaced_; }
  bool has_replaced_values() const { return replaced_ != nullptr; }

 private:
  friend class ReplacedValues;
  struct Slot {
    Tensor tensor;
    uint64_t version = 0;
    bool is_reserved = false;
    PendingWrites* pending = nullptr;  // nullptr: nobody writes it behind its users' backs
  };
  static Slot& Settled(Slot& slot);
  std::map<std::string, std::unique_ptr<Slot>, std::less<>> slots_;
  uint64_t generation_ = 0;
  const ReplacedValues* replaced_ = nullptr;
};

}  // namespace skiff
