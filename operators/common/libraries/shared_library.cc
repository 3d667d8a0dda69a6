#include "operators/common/libraries/shared_library.h"

#include <dlfcn.h>

#include <utility>

#include "framework/base/str_cat.h"

namespace skiff {

SharedLibrary::SharedLibrary(std::string name)
    : name_(std::move(name)), library_(dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ != nullptr) return;
  failure_ = dlerror();
  // Where the toolkit's installer puts it without telling the loader.
  library_ = dlopen(StrCat("/usr/local/cuda/lib64/", name_).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ != nullptr) failure_.clear();
}

void* SharedLibrary::AddressOf(const char* function_name) {
  if (library_ == nullptr) return nullptr;
  void* const address = dlsym(library_, function_name);
  if (address == nullptr && failure_.empty()) failure_ = StrCat(name_, " lacks ", function_name);
  return address;
}

}  // namespace skiff
