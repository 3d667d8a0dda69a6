// A library that is loaded while the program runs, which starts without it, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace skiff {

// Where the installer of the CUDA toolkit puts libraries without telling the dynamic linker.
inline constexpr const char* kCudaLibraryFolder = "/usr/local/cuda/lib64";

class SharedLibrary {
 public:
  // Returns a function of a library; nullptr if the library has no function of this name.
  using StandIn = void* (*)(std::string_view function_name);

  // Loads the library of this file name: as the dynamic linker finds it, else from the first of the
  // folders that has such a file. It stays loaded until the process ends. If there is none, Find
  // finds nothing.
  explicit SharedLibrary(std::string name, const std::vector<std::string>& folders = {});

  // Puts a stand-in in place of all libraries whose file names begin with `prefix`, from now on:
  // emulated devices have libraries of their own. Call it before main().
  static void Replace(std::string prefix, StandIn stand_in);

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
  // Returns whether there is a file, which is then loaded or the failure.
  bool LoadFrom(const std::string& folder);
  void* AddressOf(const char* function_name);

  const std::string name_;
  const StandIn stand_in_;
  void* library_ = nullptr;
  std::string failure_;  // the first
};

}  // namespace skiff
