#include "framework/ir/master_name.h"

#include "framework/base/str_cat.h"

namespace skiff {

std::string MasterName(std::string_view parameter) { return StrCat(parameter, "_fp32_master_0"); }

}  // namespace skiff
