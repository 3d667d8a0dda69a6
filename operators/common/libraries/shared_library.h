// A library that is loaded while the program runs, which starts without it, too.
#pragma once

#include <string>

namespace skiff {

class SharedLibrary {
 public:
  // Loads the library of this file name, as the dynamic linker finds it or from where the installer
  // of the CUDA toolkit puts it. It stays loaded until the process ends. If there is none, Find
  // finds nothing.
  explicit SharedLibrary(std::string name);

  // Finds a function. Returns false, and sets *function to nullptr, if there is none. Function must
  // be the type that the library gives it.
  template <class Function>
  bool Find(const char* function_name, Function** function) {
    *function = reinterpret_cast<Function*>(AddressOf(function_name));
    return *function != nullptr;
  }

  // Returns why the library wasn't loaded, or which function it lacks; "" if neither happened.
  const std::string& failure() const { return failure_; }

 private:
  void* AddressOf(const char* function_name);

  const std::string name_;
  void* library_ = nullptr;
  std::string failure_;  // the first
};

}  // namespace skiff
