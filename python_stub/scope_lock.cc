#include "python_stub/scope_lock.h"

#include <new>
#include <utility>

namespace skiff::python {
namespace {

thread_local ScopeLock* held = nullptr;

}  // namespace

ScopeLock::ScopeLock(std::mutex& mutex) : others_run_(std::in_place), lock_(mutex) { held = this; }

ScopeLock::~ScopeLock() { held = nullptr; }

void ScopeLock::Release(pybind11::object object) {
  if (held == nullptr) {
    const pybind11::gil_scoped_acquire interpreter;
    object = pybind11::object();
    return;
  }
  try {
    held->released_.push_back(std::move(object));
  } catch (const std::bad_alloc&) {
    object.release();  // leaks it: counting down needs the interpreter
  }
}

}  // namespace skiff::python
