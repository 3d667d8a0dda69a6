// CUDA kernels of ops that only move memory. For .cu files only.
#pragma once

#include <initializer_list>

#include "framework/op/registry.h"

namespace skiff {

// Registers the CPU's kernels of these ops for CUDA, too. Their factories must move data by a
// mover (memory_mover.h or data_mover.h) and read on the host whatever the host must know. Sets the
// MemoryMover of devices.
void AddMovingKernels(OpRegistry& registry, std::initializer_list<const char*> types);

}  // namespace skiff
