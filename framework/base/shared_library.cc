#include "framework/base/shared_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "framework/base/str_cat.h"

namespace skiff {
namespace {

struct Replacement {
  std::string prefix;
  SharedLibrary::StandIn stand_in;
};

std::vector<Replacement>& Replacements() {
  static std::vector<Replacement> replacements;
  return replacements;
}

SharedLibrary::StandIn StandInOf(std::string_view name) {
  const auto found = std::ranges::find_if(Replacements(), [&](const Replacement& replacement) {
    return name.starts_with(replacement.prefix);
  });
  return found == Replacements().end() ? nullptr : found->stand_in;
}

void* Load(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

}  // namespace

void SharedLibrary::Replace(std::string prefix, StandIn stand_in) {
  Replacements().push_back({.prefix = std::move(prefix), .stand_in = stand_in});
}

SharedLibrary::SharedLibrary(std::string name, const std::vector<std::string>& folders)
    : name_(std::move(name)), stand_in_(StandInOf(name_)) {
  if (stand_in_ != nullptr) return;
  library_ = Load(name_);
  if (library_ != nullptr) return;
  failure_ = dlerror();
  if (std::ranges::any_of(folders, [&](const std::string& folder) { return LoadFrom(folder); })) {
    return;
  }
  if (!folders.empty()) failure_ += StrCat("; nor is it in ", Join(folders, ", "));
}

bool SharedLibrary::LoadFrom(const std::string& folder) {
  const std::string path = StrCat(folder, "/", name_);
  if (access(path.c_str(), F_OK) != 0) return false;
  library_ = Load(path);
  failure_ = library_ == nullptr ? dlerror() : "";
  return true;
}

void* SharedLibrary::AddressOf(const char* function_name) {
  void* address = nullptr;
  if (stand_in_ != nullptr) {
    address = stand_in_(function_name);
  } else if (library_ != nullptr) {
    address = dlsym(library_, function_name);
  }
  if (address == nullptr && failure_.empty()) failure_ = StrCat(name_, " lacks ", function_name);
  return address;
}

}  // namespace skiff
