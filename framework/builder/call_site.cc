#include "framework/builder/call_site.h"

#include <utility>

#include "framework/base/str_cat.h"

namespace skiff {
namespace {

// Of the innermost guard of this thread, or nullptr.
thread_local const CreationSite* current = nullptr;

}  // namespace

CallSiteGuard::CallSiteGuard(std::string file, int32_t line)
    : site_{std::move(file), line}, previous_(current) {
  current = &site_;
}

CallSiteGuard::~CallSiteGuard() { current = previous_; }

CreationSite SiteOf(const std::source_location& location) {
  if (current != nullptr) return *current;
  return {location.file_name(), static_cast<int32_t>(location.line())};
}

std::string SiteText(const std::source_location& location) {
  const CreationSite site = SiteOf(location);
  return StrCat(site.file, ":", site.line);
}

}  // namespace skiff
