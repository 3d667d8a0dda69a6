// The handles and descriptors of a library's stand-in.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace skiff::cuda_emulation {

// Returns a number that no object of any kind has had. It is no address that anyone may read.
inline uintptr_t NextObjectNumber() {
  static std::atomic<uintptr_t> last{0};
  return ++last;
}

// The objects of a kind that have been made and not destroyed. Callers get numbers for pointers, so
// that a pointer to another kind, or to a destroyed object, is found. Thread-safe.
template <class Object>
class LiveObjects {
 public:
  // Makes an object and sets *pointer to the caller's handle for it. Returns false, and makes none,
  // if `pointer` is nullptr.
  template <class Pointer>
  static bool Make(Pointer* pointer, const Object& object = {}) {
    if (pointer == nullptr) return false;
    const uintptr_t number = NextObjectNumber();
    const std::lock_guard lock(Mutex());
    All()[number] = object;
    *pointer = reinterpret_cast<Pointer>(number);
    return true;
  }

  // Returns false if there is no such object.
  static bool Destroy(const void* pointer) {
    const std::lock_guard lock(Mutex());
    return All().erase(reinterpret_cast<uintptr_t>(pointer)) > 0;
  }

  // Returns a copy; nothing if there is no such object.
  static std::optional<Object> Get(const void* pointer) {
    const std::lock_guard lock(Mutex());
    const auto found = All().find(reinterpret_cast<uintptr_t>(pointer));
    return found == All().end() ? std::nullopt : std::optional(found->second);
  }

  // Calls change(&object). Returns false if there is no such object.
  template <class Change>
  static bool Set(const void* pointer, const Change& change) {
    const std::lock_guard lock(Mutex());
    const auto found = All().find(reinterpret_cast<uintptr_t>(pointer));
    if (found == All().end()) return false;
    change(&found->second);
    return true;
  }

 private:
  static std::mutex& Mutex() {
    static auto& mutex = *new std::mutex;
    return mutex;
  }
  static std::map<uintptr_t, Object>& All() {
    static auto& all = *new std::map<uintptr_t, Object>;
    return all;
  }
};

}  // namespace skiff::cuda_emulation
