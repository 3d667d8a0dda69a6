#include "operators/collective/kernels/collective_definition.h"

#include <algorithm>
#include <string>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/common/input_checks.h"
#include "operators/common/ranks/messages.h"

namespace skiff {
namespace {

std::string RanksText(int64_t ranks) { return StrCat(ranks, ranks == 1 ? " rank" : " ranks"); }

}  // namespace

std::vector<AttrDef> RingAttrs() {
  return {{.name = "ring_id",
           .type = AttrType::kInt,
           .default_value = int32_t{0},
           .doc = "The group of ranks; 0, all ranks, is the only one.",
           .accepts = [](const Attribute& value) { return std::get<int32_t>(value) == 0; },
           .expected = "0: there is one ring, of all ranks",
           .refusal = ErrorCode::kUnimplemented},
          {.name = "use_calc_stream",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "On which stream PaddlePaddle works; nothing depends on it."}};
}

AttrDef RankCountAttr() {
  return {.name = "nranks",
          .type = AttrType::kInt,
          .default_value = int32_t{1},
          .doc = "The number of ranks. A run with other ranks is an Error.",
          .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; },
          .expected = "at least 1",
          .refusal = ErrorCode::kOutOfRange};
}

void SetOutputsLike(OpContext& context, std::string_view output, std::string_view input) {
  const std::string& type = context.op().type;
  const DType dtype = context.Input(input).dtype;
  for (size_t i = 0; i < context.InputCount(input); ++i) {
    const DType found = context.Input(input, i).dtype;
    SKIFF_ENFORCE(found == dtype, kInvalidArgument, type, ": ", input, "[", i, "] is ", found,
                  ", expected ", dtype, " as ", input, "[0]");
    SKIFF_ENFORCE(context.OutputIndex(output, i) >= 0, kInvalidArgument, type, ": output \"",
                  output, "\" has no argument ", i, ", expected one for each ", input);
    context.SetOutputLike(output, input, i);
  }
}

int64_t AllElements(const OpContext& context) {
  int64_t count = 0;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const Shape& shape = context.Input("X", i).shape;
    if (!shape.is_known()) return -1;
    count = AddCounts(count, shape.element_count());
  }
  return count;
}

AttrDef PartsAttr() {
  return {.name = "parts",
          .type = AttrType::kLongs,
          .doc =
              "Where the part of each rank begins, and the number of all elements. A run with "
              "other ranks is an Error."};
}

void CheckParts(const OpContext& context) {
  const auto& parts = context.Attr<std::vector<int64_t>>("parts");
  const int64_t all = AllElements(context);
  const bool fits = parts.size() >= 2 && parts.front() == 0 && std::ranges::is_sorted(parts) &&
                    (all < 0 || parts.back() == all);
  SKIFF_ENFORCE(fits, kInvalidArgument, context.op().type, ": parts = [", Join(parts, ", "),
                "], expected where the part of each rank begins, in ascending order from 0, and ",
                all < 0 ? "the number of elements" : StrCat(all, ", the number of elements"));
}

AttrDef MeanAttr() {
  return {.name = "mean",
          .type = AttrType::kBool,
          .default_value = false,
          .doc = "Whether the sum is multiplied by 1 / the number of ranks."};
}

SlotDef SkipSlot() {
  return {.name = "Skip",
          .doc =
              "One bool, the same on all ranks: whether each rank takes X alone, without a "
              "message to others, and without `mean`.",
          .dispensable = true,
          .on_host = true};
}

void CheckSkip(const OpContext& context) { CheckOneElement(context, "Skip", {DType::kBool}); }

void CheckRankCount(const KernelContext& run, std::string_view type, int64_t nranks) {
  const int64_t found = WorldOf(run).size;
  SKIFF_ENFORCE(found == nranks, kFailedPrecondition, type, ": nranks = ", nranks,
                ", and the run has ", RanksText(found), ", expected nranks = ", found);
}

void CheckPartCount(const KernelContext& run, std::string_view type, int64_t parts) {
  const int64_t found = WorldOf(run).size;
  SKIFF_ENFORCE(found == parts, kFailedPrecondition, type, ": parts for ", RanksText(parts),
                ", and the run has ", RanksText(found), ", expected a part for each");
}

}  // namespace skiff
