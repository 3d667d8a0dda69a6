// Executors and what they run, as objects of Python.
#pragma once

#include <memory>
#include <utility>

#include "python_stub/binding.h"

namespace skiff::python {

// Members are destroyed in the reverse order: what runs, then the executor, then the scope.
struct PythonExecutor {
  PythonExecutor(Place place, std::shared_ptr<SharedScope> shared)
      : scope(std::move(shared)), executor(place, &scope->scope) {}

  std::shared_ptr<SharedScope> scope;
  Executor executor;
};

struct PythonCompiledProgram {
  std::shared_ptr<PythonExecutor> executor;
  CompiledProgram program;
};

struct PythonBoundProgram {
  std::shared_ptr<PythonCompiledProgram> compiled;
  size_t fetches;
  BoundProgram program;
};

}  // namespace skiff::python
