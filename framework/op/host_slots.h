// Arguments that lie in the memory of the host though the program runs on a device.
#pragma once

#include <string_view>

#include "framework/base/place.h"
#include "framework/op/op_def.h"

namespace skiff {

// A bool attribute of ops that keep something for each parameter: whether that lies in the memory
// of the host, on every place. The op computes the same either way.
inline constexpr const char* kOnHostAttr = "on_host";

// Where the arguments of a slot, an input or output, lie when the op runs on `place`: there, but
// for what the op moves on in place (OpDef::in_place) with kOnHostAttr.
Place PlaceOfSlot(const OpDef& def, const Op& op, std::string_view slot, Place place);

}  // namespace skiff
