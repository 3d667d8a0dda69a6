#include "framework/transpiler/api/data_parallel_options.h"

#include "framework/base/error.h"

namespace skiff {

SumOrder SumOrderFromName(const std::string& name) {
  if (name == "ranks") return SumOrder::kRanks;
  SKIFF_ENFORCE(name == "fast", kInvalidArgument, "the order of sums over ranks is \"", name,
                "\", expected ranks or fast");
  return SumOrder::kFast;
}

std::string SumOrderName(SumOrder order) { return order == SumOrder::kRanks ? "ranks" : "fast"; }

}  // namespace skiff
