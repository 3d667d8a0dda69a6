// Scopes that several threads of Python may reach, and their locks.
#pragma once

#include <pybind11/pybind11.h>

#include <mutex>
#include <optional>
#include <vector>

#include "framework/tensor/scope.h"

namespace skiff::python {

struct SharedScope {
  Scope scope;
  std::mutex mutex;
};

// Lets other threads of Python run, then waits until no other thread uses the scope, or what else
// the mutex is for. A thread has one lock at a time, holds the interpreter before and after, and
// runs no code of Python in between, whose finalizers may need another lock: so nothing deadlocks.
class ScopeLock {
 public:
  explicit ScopeLock(std::mutex& mutex);
  explicit ScopeLock(SharedScope& scope) : ScopeLock(scope.mutex) {}
  ~ScopeLock();
  ScopeLock(const ScopeLock&) = delete;
  ScopeLock& operator=(const ScopeLock&) = delete;

  // Lets an object of Python go: at once or, if this thread has a lock, after the lock. The thread
  // needn't hold the interpreter.
  static void Release(pybind11::object object);

 private:
  // Destroyed in the reverse order: the mutex, the interpreter, then the objects.
  std::vector<pybind11::object> released_;
  std::optional<pybind11::gil_scoped_release> others_run_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace skiff::python
