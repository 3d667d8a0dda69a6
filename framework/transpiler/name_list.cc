#include "framework/transpiler/name_list.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {

std::string FewNames(std::vector<std::string> names) {
  constexpr size_t kShown = 3;
  std::ranges::sort(names);
  const size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return more == 0 ? Join(names, ", ") : StrCat(Join(names, ", "), " and ", more, " more");
}

}  // namespace skiff
