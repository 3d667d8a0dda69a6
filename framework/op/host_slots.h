// Arguments that stay in host memory while the program runs on a device.
#pragma once

#include <string_view>

#include "framework/base/place.h"
#include "framework/op/op_def.h"

namespace skiff {

// A bool attribute of ops that keep a state per parameter: whether that state stays in host memory
// on every place. The results are the same either way.
inline constexpr const char* kOnHostAttr = "on_host";

// Returns the place of the arguments of a slot, an input or output, of an op that runs on `place`.
// The CPU is the place of inputs that the host reads (SlotDef::on_host, attribute), and of states
// that the op updates in place (OpDef::in_place) with kOnHostAttr set. All other arguments are on
// `place`.
Place PlaceOfSlot(const OpDef& def, const Op& op, std::string_view slot, Place place);

// Returns whether a kernel on a device may refuse data of the slot there (KernelContext::fault).
// The host itself refuses data that the host reads, such as indices and arrays.
bool MayNoteFault(const SlotDef& slot);

}  // namespace skiff
