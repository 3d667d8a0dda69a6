// Streams, events and graphs. A stream does its work in order: the thread that waits for the stream
// does the work or, if nobody waits, a thread of the stream, late.
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace skiff::cuda_emulation {

using Work = std::function<void()>;

// In all functions a stream of nullptr is the null stream of the current device. A stream that was
// never created, or was destroyed, ends the process with a message.

// Returns the device that the stream belongs to: the one that was current when it was created.
int DeviceOfStream(cudaStream_t stream);

// The three functions that wait: the calling thread does the streams' work itself, unless another
// thread is at it. It has made sure that it may wait (CheckNotCaptured, CheckMayCallUnsafely,
// IsInHostFunction), and learns what failed from TakeFailure (failures.h).

// Waits until all streams of the device have done the work given before the call, one stream after
// the other in a random order.
void WaitForDevice(int device);

// Waits until the stream has done the work given before the call.
void WaitForStream(cudaStream_t stream);

// Waits until the event has passed: the stream has done the work given before the last recording of
// the event. Returns at once if the event was never recorded.
void WaitForEvent(cudaEvent_t event);

// Appends work to a stream, or to the graph that the stream is captured into. Returns
// cudaErrorInvalidResourceHandle if the stream's device isn't the current one, and
// cudaErrorNotPermitted inside of a host function, and appends nothing; else cudaSuccess.
cudaError_t Give(cudaStream_t stream, Work work);

// Does work before it returns, and returns true, if that comes to the same as Give, which nothing
// hinders, and WaitForStream. Does nothing, and returns false, if the stream is captured or has
// work left, or if it takes turns with the null stream and any stream that does so has work left.
// No stream begins work meanwhile, and `work` may not use streams.
bool DoAtOnce(cudaStream_t stream, const Work& work);

// For calls that a captured stream refuses. Returns cudaSuccess if the stream isn't captured. Else
// returns cudaErrorStreamCaptureUnsupported, and cudaStreamEndCapture will fail.
cudaError_t CheckNotCaptured(cudaStream_t stream);

// For calls that concern a whole device, as cudaMalloc: a capture of any stream may refuse them,
// as the mode of the capture and that of the calling thread say
// (cudaThreadExchangeStreamCaptureMode). Returns cudaSuccess if none does. Else returns
// cudaErrorStreamCaptureUnsupported, and cudaStreamEndCapture will fail. Returns
// cudaErrorNotPermitted inside of a host function.
cudaError_t CheckMayCallUnsafely();

// Returns whether the calling thread runs a function that cudaLaunchHostFunc was given. Such a
// function may not call CUDA.
bool IsInHostFunction();

}  // namespace skiff::cuda_emulation
