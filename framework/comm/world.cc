#include "framework/comm/world.h"

#include "framework/base/str_cat.h"

namespace skiff {

std::string World::Text() const {
  return StrCat("rank ", rank, host.empty() ? "" : StrCat(" (host ", host, ")"));
}

}  // namespace skiff
