// Where a layer was called, as messages and ops say it.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "framework/ir/program.h"

namespace skiff {

// While a guard exists, layers called by this thread name the guard's file and line instead of the
// given source location: bindings for other languages name the caller's script. Guards nest like
// the C++ scopes that hold them.
class CallSiteGuard {
 public:
  CallSiteGuard(std::string file, int32_t line);
  ~CallSiteGuard();
  CallSiteGuard(const CallSiteGuard&) = delete;
  CallSiteGuard& operator=(const CallSiteGuard&) = delete;

 private:
  CreationSite site_;
  const CreationSite* previous_;
};

// Returns the site of the innermost guard of this thread; without a guard, the site of `location`.
CreationSite SiteOf(const std::source_location& location);
// Returns the same as text: "net.cc:12".
std::string SiteText(const std::source_location& location);

}  // namespace skiff
