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

Overlap OverlapFromName(const std::string& name) {
  for (const Overlap overlap : {Overlap::kAuto, Overlap::kOn, Overlap::kOff}) {
    if (name == OverlapName(overlap)) return overlap;
  }
  Throw(ErrorCode::kInvalidArgument, "the overlap of collective ops is \"", name,
        "\", expected auto, on or off");
}

std::string OverlapName(Overlap overlap) {
  if (overlap == Overlap::kAuto) return "auto";
  return overlap == Overlap::kOn ? "on" : "off";
}

}  // namespace skiff
