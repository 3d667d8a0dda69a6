// Replaces operators/common/libraries/shared_library.cc where the device is emulated: the libraries
// are stand-ins, all in one.
#include "operators/common/libraries/shared_library.h"

#include <utility>

#include "framework/base/str_cat.h"
#include "tools/cuda/emulation/libraries/libraries.h"

namespace skiff {

SharedLibrary::SharedLibrary(std::string name) : name_(std::move(name)) {}

void* SharedLibrary::AddressOf(const char* function_name) {
  void* const address = cuda_emulation::LibraryFunction(function_name);
  if (address == nullptr && failure_.empty()) {
    failure_ = StrCat(name_, ": the emulated device has no ", function_name);
  }
  return address;
}

}  // namespace skiff
