// Where a kernel issues its work: a place and, on a device, a stream.
#pragma once

#include "framework/base/place.h"

namespace skiff {

class DeviceStream;

struct DeviceContext {
  Place place;
  DeviceStream* stream = nullptr;  // nullptr on the CPU
};

}  // namespace skiff
