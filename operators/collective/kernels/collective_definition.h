// Slots, attributes and checks that collective ops share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"

namespace skiff {

// Returns Fluid's attributes of every collective op: ring_id, of which only 0 exists, and
// use_calc_stream, which changes nothing, since the plan orders the streams.
std::vector<AttrDef> RingAttrs();
// Returns the attribute nranks, for which CheckRankCount is made.
AttrDef RankCountAttr();

// Gives each argument of an output the shape and dtype of the argument of `input` that has the same
// index. Throws Error unless all arguments of `input` have one dtype, and each of them an argument
// of the output.
void SetOutputsLike(OpContext& context, std::string_view output, std::string_view input);

// Returns the elements of all X, or -1 if a shape isn't known.
int64_t AllElements(const OpContext& context);
// Returns the attribute `parts`: where the part of each rank begins among the elements of all X,
// taken one tensor after the other, and their number.
AttrDef PartsAttr();
// Throws Error unless the attribute fits X.
void CheckParts(const OpContext& context);

// Return the attribute `mean` of sums, and the input Skip, by which all ranks keep to themselves.
AttrDef MeanAttr();
SlotDef SkipSlot();
// Throws Error unless Skip is absent or one bool.
void CheckSkip(const OpContext& context);

// Throw Error (kFailedPrecondition), which starts with the op's type, unless there are as many
// ranks as the attribute nranks says, or as the attribute `parts` has parts.
void CheckRankCount(const KernelContext& run, std::string_view type, int64_t nranks);
void CheckPartCount(const KernelContext& run, std::string_view type, int64_t parts);

}  // namespace skiff
