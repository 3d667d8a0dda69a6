// Executors and prepared programs, as objects of Python.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "framework/executor/executor.h"
#include "python_stub/ranks.h"
#include "python_stub/scope_lock.h"

namespace skiff::python {

// Members are destroyed in the reverse order: what runs, then the executor, then the scope.
struct PythonExecutor {
  PythonExecutor(Place place, std::shared_ptr<SharedScope> shared)
      : scope(std::move(shared)), executor(place, &scope->scope) {}

  std::shared_ptr<SharedScope> scope;
  Executor executor;
};

// Frees objects that are bound to a scope in the same way as they are used: with the lock.
struct FreesLocked {
  std::shared_ptr<std::mutex> mutex;
  template <typename Owned>
  void operator()(const Owned* owned) const {
    const ScopeLock lock(*mutex);
    delete owned;
  }
};

struct PythonCompiledProgram {
  PythonCompiledProgram(std::shared_ptr<PythonExecutor> ran_by,
                        std::shared_ptr<std::mutex> locked_by, Ranks* run_by,
                        CompiledProgram compiled)
      : executor(std::move(ran_by)),
        mutex(std::move(locked_by)),
        ranks(run_by),
        program(new CompiledProgram(std::move(compiled)), FreesLocked{mutex}) {}

  // Does work that runs the program.
  template <typename Work>
  auto Do(const Work& work) {
    const ScopeLock lock(*mutex);
    return DoOn(ranks, [&] {
      if (ranks != nullptr && !has_compared) CompareRanks();
      return work();
    });
  }
  // Throws an AgreedError if the program is a training, and ranks begin it with different weights.
  void CompareRanks();

  std::shared_ptr<PythonExecutor> executor;
  std::shared_ptr<std::mutex> mutex;  // the scope's; a clone has its own
  Ranks* ranks;                       // that run the program together; nullptr: it runs alone
  bool has_compared = false;
  std::shared_ptr<CompiledProgram> program;
};

struct PythonBoundProgram {
  std::shared_ptr<PythonCompiledProgram> compiled;
  std::shared_ptr<BoundProgram> program;
};

}  // namespace skiff::python
