#include "framework/comm/world.h"

#include <cstdio>

#include "framework/base/str_cat.h"

namespace skiff {

std::string World::Text() const {
  return StrCat("rank ", rank, host.empty() ? "" : StrCat(" (host ", host, ")"));
}

void World::Report(const std::string& message) const noexcept {
  std::fprintf(stderr, "%s: %s\n", Text().c_str(), message.c_str());
  std::fflush(stderr);
}

}  // namespace skiff
