// Where a kernel's work is issued: the place, and on a GPU the stream.
#pragma once

#include "framework/base/place.h"

namespace skiff {

struct DeviceContext {
  Place place;
  void* stream = nullptr;  // a cudaStream_t; unused on the CPU
};

}  // namespace skiff
