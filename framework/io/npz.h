// Reads NumPy's arrays from any source.
#pragma once

#include "framework/io/api/npz.h"
#include "framework/io/byte_stream.h"

namespace skiff {

// Reads a single array, with which the source must end. Errors as ReadNpyFile.
Tensor ReadNpy(ByteSource* source);

}  // namespace skiff
