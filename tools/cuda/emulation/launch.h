// A kernel that waits in a stream to be run on the CPU.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <source_location>

namespace skiff::cuda_emulation {

using Where = std::source_location;

// What stands between <<< and >>>.
struct LaunchShape {
  LaunchShape(dim3 grid_size, dim3 block_size, size_t dynamic_shared_bytes = 0,
              cudaStream_t given_to = nullptr)
      : grid(grid_size), block(block_size), shared_bytes(dynamic_shared_bytes), stream(given_to) {}

  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// A kernel with all that a launch needs.
struct KernelCall {
  // Runs the kernel's code once, as the thread of a block that is the running one.
  void Run() const { run(arguments.get()); }

  const char* name;  // for messages
  LaunchShape shape;
  void (*run)(const void* arguments);
  std::shared_ptr<const void> arguments;
  size_t argument_bytes;
  Where where;  // of the launch, for messages
};

// Gives the call to its stream, which runs all of the launch on its device. If no device could
// launch it, or if the stream refuses it, that becomes the calling thread's last error
// (cudaGetLastError), and nothing runs.
void GiveToStream(const KernelCall& call);

}  // namespace skiff::cuda_emulation
