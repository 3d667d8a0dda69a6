// How a program is compiled and run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/op/api/default_registry.h"
#include "framework/op/math_mode.h"
#include "framework/transpiler/api/data_parallel_options.h"
#include "framework/transpiler/api/memory_options.h"
#include "framework/transpiler/api/pass_options.h"

namespace skiff {

class KernelTuner;

struct CompileOptions {
  MemoryOptions memory = {};
  // Which passes run, by name: {.passes = {.skip = {"layout"}, .also = {"fuse_optimizer"}}}. The
  // headers of passes (framework/transpiler) describe each pass; docs/training.md explains the
  // passes for optimizers, which run only on request, except fuse_optimizer, which is a default on
  // a device.
  PipelineOptions passes = {};
  // From op type to the name of the kernel candidate to take where it accepts the shapes, or
  // "widened": bfloat16 and float16 then run by the float32 kernel (docs/precision.md). Compile
  // throws if there is no such op or candidate.
  KernelNames kernels = {};
  // Chooses the kernels of the ops whose type isn't in `kernels`. Without a tuner the kernel of
  // the highest priority runs that is worthwhile (KernelDef). Compile throws for a tuner of another
  // registry.
  std::shared_ptr<KernelTuner> tuner = {};
  // For comparisons: makes a plan for each exact row count of ragged feeds instead of a plan for
  // each capacity. The results are the same bits, unless the rows decide which kernel runs
  // (KernelDef::is_worthwhile), as the rows of a convolution may.
  bool exact_rows = false;
  // On a device: captures each stretch of instructions that need nothing of the host as a graph in
  // the second run of a plan, and launches that from then on, which costs the host less. Not for
  // plans with ragged feeds. The results are the same bits. A run throws an Error (kIo,
  // kFailedPrecondition) if a kernel does work that no graph can, such as waiting for the device.
  bool graphs = true;
  // On a device: how products and convolutions of float32 compute. MathMode::kTf32 lets cuBLASLt
  // and cuDNN round factors to TF32, which is faster; the results then differ in the fourth digit.
  // Kernels of our own, and recurrent ops, ignore it, as the CPU does.
  MathMode math = MathMode::kFull;
  // The ranks that run the program together.
  DataParallelOptions data_parallel = {};
  // How often a `while` may run its block. Once more is an Error (kOutOfRange), since its condition
  // may never become false.
  int64_t max_loop_iterations = 10'000'000;
  size_t plan_cache_capacity = 32;  // plans kept, least recently used first to go; 0 is an Error
};

}  // namespace skiff
