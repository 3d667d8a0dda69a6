// Streams, events and graphs. A stream does what it is given in order: the thread that waits for it
// does the work or, if nobody waits, a thread of the stream's own, late.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace skiff::cuda_emulation {

using Work = std::function<void()>;

// What a stream is given while it is captured.
struct Capture {
  std::vector<Work> nodes;
  bool is_broken = false;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
};

// How far a stream is; it outlives the stream, which ends when all it was given is done.
struct Progress {
  cudaStream_t stream = nullptr;  // only while done < given
  uint64_t given = 0;
  uint64_t done = 0;
};

// nullptr: the null stream.
void WaitForDevice();
void WaitForStream(cudaStream_t stream);
void WaitForEvent(cudaEvent_t event);

// Gives work to a stream, or to the graph that it is captured into.
cudaError_t Give(cudaStream_t stream, Work work);
// Does it, if that is what giving it to the stream and waiting for it comes to; else false.
bool DoAtOnce(cudaStream_t stream, const Work& work);
// Of the stream: cudaErrorStreamCaptureUnsupported if it is captured.
cudaError_t CheckNotCaptured(cudaStream_t stream);
// The same for calls that concern the whole device: cudaMalloc and its like.
cudaError_t CheckMayCallUnsafely();
// Inside cudaLaunchHostFunc's functions nothing of CUDA may be called.
bool IsInHostFunction();

}  // namespace skiff::cuda_emulation
