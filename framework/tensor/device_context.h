// Where a kernel issues its work: a place and, on a GPU, a stream.
#pragma once

#include "framework/base/place.h"

namespace skiff {

struct DeviceContext {
  Place place;
  void* stream = nullptr;  // a cudaStream_t; unused on the CPU
};

}  // namespace skiff
