#include "tools/cuda/emulation/streams.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tools/cuda/emulation/devices.h"
#include "tools/cuda/emulation/failures.h"
#include "tools/cuda/emulation/memory.h"
#include "tools/cuda/emulation/options.h"

namespace skiff::cuda_emulation {
namespace {

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

}  // namespace
}  // namespace skiff::cuda_emulation

using skiff::cuda_emulation::Capture;
using skiff::cuda_emulation::Progress;
using skiff::cuda_emulation::Work;

struct CUstream_st {
  int device;
  bool waits_for_null = true;  // and is waited for by the null stream
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  std::deque<Work> work;
  bool is_working = false;
  std::condition_variable given;              // work, or the end
  std::chrono::steady_clock::time_point due;  // when its thread begins
  std::shared_ptr<Capture> capture;
  bool ends = false;
  std::thread thread;
};

struct CUevent_st {
  int device;
  std::shared_ptr<Progress> progress;  // nullptr: never recorded
  uint64_t ticket = 0;
  std::shared_ptr<Capture> capture;
};

struct CUgraph_st {
  int device;
  std::vector<Work> nodes;
};

struct CUgraphExec_st {
  int device;
  std::vector<Work> nodes;
};

namespace skiff::cuda_emulation {
namespace {

// Of all devices. Never destroyed.
struct Streams {
  std::mutex mutex;              // of all streams, events and captures
  std::condition_variable done;  // of some stream's work
  std::set<cudaStream_t> streams;
  std::vector<cudaStream_t> null_streams =
      std::vector<cudaStream_t>(static_cast<size_t>(DeviceCount()));  // by device
  std::set<std::shared_ptr<Capture>> captures;
  uint64_t waits = 0;  // for all streams, so far
};

Streams& TheStreams() {
  static auto& streams = *new Streams;
  return streams;
}

cudaStream_t& NullStreamOf(int device) {
  return TheStreams().null_streams[static_cast<size_t>(device)];
}

thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
thread_local bool in_host_function = false;

bool IsIdle(const CUstream_st& stream) { return stream.progress->done == stream.progress->given; }

// Does what comes next in a stream that isn't working. The mutex is free meanwhile.
void DoNext(std::unique_lock<std::mutex>* lock, cudaStream_t stream) {
  const Work work = std::move(stream->work.front());
  stream->work.pop_front();
  stream->is_working = true;
  lock->unlock();
  work();
  lock->lock();
  stream->is_working = false;
  // Before anybody learns that the stream is idle.
  if (stream->work.empty()) DeviceMemory::Get().Close();
  ++stream->progress->done;
  TheStreams().done.notify_all();
}

// The stream's own thread does, late, what nobody waits for: a thread that waits does the work
// itself.
void DoWork(cudaStream_t stream) {
  std::unique_lock lock(TheStreams().mutex);
  while (!stream->ends) {
    if (stream->work.empty()) {
      stream->given.wait(lock);
    } else if (stream->is_working) {
      TheStreams().done.wait(lock);
    } else if (std::chrono::steady_clock::now() < stream->due) {
      stream->given.wait_until(lock, stream->due);
    } else {
      DoNext(&lock, stream);
    }
  }
}

cudaStream_t NewStream(int device, bool waits_for_null) {
  auto* stream = new CUstream_st{.device = device};
  stream->waits_for_null = waits_for_null;
  stream->progress->stream = stream;
  stream->thread = std::thread([stream] { DoWork(stream); });
  return stream;
}

// With the mutex, as the next functions. Returns the stream; the null stream of the current device
// for nullptr.
cudaStream_t Found(cudaStream_t stream) {
  if (stream != nullptr) {
    if (!TheStreams().streams.contains(stream)) Die("a stream that is none, or was destroyed");
    return stream;
  }
  cudaStream_t& null_stream = NullStreamOf(CurrentDevice());
  if (null_stream == nullptr) null_stream = NewStream(CurrentDevice(), true);
  return null_stream;
}

bool IsNullStream(cudaStream_t stream) { return stream == NullStreamOf(stream->device); }

void WaitUntil(std::unique_lock<std::mutex>* lock, const std::shared_ptr<Progress>& progress,
               uint64_t ticket) {
  while (progress->done < ticket) {
    const cudaStream_t stream = progress->stream;
    if (stream->is_working) {
      TheStreams().done.wait(*lock);
    } else {
      DoNext(lock, stream);
    }
  }
  DeviceMemory::Get().Close();
}

void Append(cudaStream_t stream, Work work) {
  if (IsIdle(*stream)) {
    stream->due =
        std::chrono::steady_clock::now() + std::chrono::microseconds(TheOptions().late_us);
    stream->given.notify_one();
  }
  stream->work.push_back(std::move(work));
  ++stream->progress->given;
}

void AppendWait(cudaStream_t stream, std::shared_ptr<Progress> progress, uint64_t ticket) {
  if (progress->done >= ticket) return;
  Append(stream, [progress = std::move(progress), ticket] {
    DeviceMemory::Get().Close();
    std::unique_lock lock(TheStreams().mutex);
    WaitUntil(&lock, progress, ticket);
  });
}

// The null stream and those that don't say cudaStreamNonBlocking take turns.
void AppendInTurn(cudaStream_t stream, Work work) {
  if (IsNullStream(stream)) {
    for (cudaStream_t other : TheStreams().streams) {
      if (!other->waits_for_null || other->device != stream->device) continue;
      AppendWait(stream, other->progress, other->progress->given);
    }
  } else if (stream->waits_for_null && NullStreamOf(stream->device) != nullptr) {
    const auto& progress = NullStreamOf(stream->device)->progress;
    AppendWait(stream, progress, progress->given);
  }
  Append(stream, std::move(work));
}

cudaError_t CheckMayAppendTo(const CUstream_st& stream) {
  if (in_host_function) return cudaErrorNotPermitted;
  return stream.device == CurrentDevice() ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

}  // namespace

bool IsInHostFunction() { return in_host_function; }

int DeviceOfStream(cudaStream_t stream) {
  const std::lock_guard lock(TheStreams().mutex);
  return Found(stream)->device;
}

cudaError_t Give(cudaStream_t stream, Work work) {
  const std::lock_guard lock(TheStreams().mutex);
  stream = Found(stream);
  if (const cudaError_t error = CheckMayAppendTo(*stream); error != cudaSuccess) return error;
  if (stream->capture != nullptr) {
    stream->capture->nodes.push_back(std::move(work));
  } else {
    AppendInTurn(stream, std::move(work));
  }
  return cudaSuccess;
}

bool DoAtOnce(cudaStream_t stream, const Work& work) {
  const std::lock_guard lock(TheStreams().mutex);
  stream = Found(stream);
  if (CheckMayAppendTo(*stream) != cudaSuccess) return false;
  if (stream->capture != nullptr || !IsIdle(*stream)) return false;
  const auto is_no_hindrance = [stream](cudaStream_t other) {
    return !other->waits_for_null || other->device != stream->device || IsIdle(*other);
  };
  if (stream->waits_for_null && !(is_no_hindrance(Found(nullptr)) &&
                                  std::ranges::all_of(TheStreams().streams, is_no_hindrance))) {
    return false;
  }
  work();
  return true;
}

cudaError_t CheckNotCaptured(cudaStream_t stream) {
  const std::lock_guard lock(TheStreams().mutex);
  const std::shared_ptr<Capture>& capture = Found(stream)->capture;
  if (capture == nullptr) return cudaSuccess;
  capture->is_broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t CheckMayCallUnsafely() {
  if (in_host_function) return cudaErrorNotPermitted;
  if (capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  const std::lock_guard lock(TheStreams().mutex);
  for (const std::shared_ptr<Capture>& capture : TheStreams().captures) {
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    const bool is_own = capture->thread == std::this_thread::get_id();
    const bool is_global =
        capture->mode == cudaStreamCaptureModeGlobal && capture_mode == cudaStreamCaptureModeGlobal;
    if (!is_own && !is_global) continue;
    capture->is_broken = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

void WaitForStream(cudaStream_t stream) {
  std::unique_lock lock(TheStreams().mutex);
  const std::shared_ptr<Progress> progress = Found(stream)->progress;
  WaitUntil(&lock, progress, progress->given);
}

void WaitForDevice(int device) {
  std::unique_lock lock(TheStreams().mutex);
  std::vector<std::pair<std::shared_ptr<Progress>, uint64_t>> all;
  const auto add = [&](cudaStream_t stream) {
    if (stream == nullptr || stream->device != device) return;
    all.emplace_back(stream->progress, stream->progress->given);
  };
  for (cudaStream_t stream : TheStreams().streams) add(stream);
  add(NullStreamOf(device));
  // A stream that should wait for another one and doesn't comes first, sooner or later.
  std::minstd_rand random(static_cast<unsigned>(TheOptions().seed + TheStreams().waits++));
  std::ranges::shuffle(all, random);
  for (const auto& [progress, ticket] : all) WaitUntil(&lock, progress, ticket);
}

void WaitForEvent(cudaEvent_t event) {
  std::unique_lock lock(TheStreams().mutex);
  if (event->progress == nullptr) return;
  WaitUntil(&lock, std::shared_ptr(event->progress), event->ticket);
}

}  // namespace skiff::cuda_emulation

using namespace skiff::cuda_emulation;  // NOLINT: what follows is CUDA's

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = NewStream(CurrentDevice(), (flags & cudaStreamNonBlocking) == 0);
  const std::lock_guard lock(TheStreams().mutex);
  TheStreams().streams.insert(*stream);
  return cudaSuccess;
}

// What it has been given will be done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    std::unique_lock lock(TheStreams().mutex);
    if (stream == nullptr || Found(stream)->capture != nullptr) return cudaErrorInvalidValue;
    TheStreams().streams.erase(stream);
    WaitUntil(&lock, stream->progress, stream->progress->given);
    stream->ends = true;
    stream->given.notify_one();
  }
  stream->thread.join();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(TheStreams().mutex);
  const Progress& progress = *Found(stream)->progress;
  return progress.done == progress.given ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = new CUevent_st{.device = CurrentDevice()};
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(TheStreams().mutex);
  stream = Found(stream);
  if (const cudaError_t error = CheckMayAppendTo(*stream); error != cudaSuccess) return error;
  if (event->device != stream->device) return cudaErrorInvalidResourceHandle;
  event->capture = stream->capture;
  if (stream->capture != nullptr) return cudaSuccess;
  event->progress = stream->progress;
  event->ticket = stream->progress->given;
  return cudaSuccess;
}

// No time passes here.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard lock(TheStreams().mutex);
  if (start->device != end->device) return cudaErrorInvalidResourceHandle;
  for (const cudaEvent_t event : {start, end}) {
    if (event->progress == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->progress->done < event->ticket) return cudaErrorNotReady;
  }
  *milliseconds = 0;
  return cudaSuccess;
}

// The event may be another device's.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const std::lock_guard lock(TheStreams().mutex);
  stream = Found(stream);
  if (const cudaError_t error = CheckMayAppendTo(*stream); error != cudaSuccess) return error;
  if (event->capture != nullptr) {
    if (!TheStreams().captures.contains(event->capture)) return cudaErrorCapturedEvent;
    // The stream's work goes into the same graph from now on.
    if (stream->capture != nullptr && stream->capture != event->capture) {
      return cudaErrorStreamCaptureMerge;
    }
    stream->capture = event->capture;
    return cudaSuccess;
  }
  if (stream->capture != nullptr) return cudaErrorStreamCaptureIsolation;
  if (event->progress != nullptr) AppendWait(stream, event->progress, event->ticket);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (IsInHostFunction()) return cudaErrorNotPermitted;
  const std::lock_guard lock(TheStreams().mutex);
  if (event->capture != nullptr) return cudaErrorCapturedEvent;
  const bool is_done = event->progress == nullptr || event->progress->done >= event->ticket;
  return is_done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(TheStreams().mutex);
  const std::shared_ptr<Capture>& capture = Found(stream)->capture;
  *status = capture == nullptr   ? cudaStreamCaptureStatusNone
            : capture->is_broken ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(TheStreams().mutex);
  if (stream == nullptr || Found(stream)->capture != nullptr) {
    return cudaErrorStreamCaptureUnsupported;
  }
  if (const cudaError_t error = CheckMayAppendTo(*stream); error != cudaSuccess) return error;
  stream->capture = std::make_shared<Capture>();
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  TheStreams().captures.insert(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(TheStreams().mutex);
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = Found(stream)->capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  for (cudaStream_t other : TheStreams().streams) {
    if (other->capture == capture) other->capture = nullptr;
  }
  TheStreams().captures.erase(capture);
  if (capture->is_broken) return cudaErrorStreamCaptureInvalidated;
  *graph = new CUgraph_st{stream->device, capture->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) return cudaErrorNotSupported;
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long /*flags*/) {
  *executable = new CUgraphExec_st{graph->device, graph->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable->device != DeviceOfStream(stream)) return cudaErrorInvalidResourceHandle;
  return Give(stream, [nodes = executable->nodes] {
    for (const Work& node : nodes) node();
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

// The function may not call CUDA.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return Give(stream, [function, argument] {
    DeviceMemory::Get().Close();
    in_host_function = true;
    function(argument);
    in_host_function = false;
  });
}
