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
  std::shared_ptr<Progress> progress;  // nullptr: never recorded
  uint64_t ticket = 0;
  std::shared_ptr<Capture> capture;
};

struct CUgraph_st {
  std::vector<Work> nodes;
};

struct CUgraphExec_st {
  std::vector<Work> nodes;
};

namespace skiff::cuda_emulation {
namespace {

// Never destroyed.
struct Device {
  std::mutex mutex;              // of all streams, events and captures
  std::condition_variable done;  // of some stream's work
  std::set<cudaStream_t> streams;
  cudaStream_t null_stream = nullptr;
  std::set<std::shared_ptr<Capture>> captures;
  uint64_t waits = 0;  // for all streams, so far
};

Device& TheDevice() {
  static auto& device = *new Device;
  return device;
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
  TheDevice().done.notify_all();
}

// The stream's own thread does, late, what nobody waits for: a thread that waits does the work
// itself.
void DoWork(cudaStream_t stream) {
  std::unique_lock lock(TheDevice().mutex);
  while (!stream->ends) {
    if (stream->work.empty()) {
      stream->given.wait(lock);
    } else if (stream->is_working) {
      TheDevice().done.wait(lock);
    } else if (std::chrono::steady_clock::now() < stream->due) {
      stream->given.wait_until(lock, stream->due);
    } else {
      DoNext(&lock, stream);
    }
  }
}

cudaStream_t NewStream(bool waits_for_null) {
  auto* stream = new CUstream_st;
  stream->waits_for_null = waits_for_null;
  stream->progress->stream = stream;
  stream->thread = std::thread([stream] { DoWork(stream); });
  return stream;
}

// With the device's mutex.
cudaStream_t Found(cudaStream_t stream) {
  Device& device = TheDevice();
  if (stream != nullptr) {
    if (!device.streams.contains(stream)) Die("a stream that is none, or was destroyed");
    return stream;
  }
  if (device.null_stream == nullptr) device.null_stream = NewStream(true);
  return device.null_stream;
}

void WaitUntil(std::unique_lock<std::mutex>* lock, const std::shared_ptr<Progress>& progress,
               uint64_t ticket) {
  while (progress->done < ticket) {
    const cudaStream_t stream = progress->stream;
    if (stream->is_working) {
      TheDevice().done.wait(*lock);
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
    std::unique_lock lock(TheDevice().mutex);
    WaitUntil(&lock, progress, ticket);
  });
}

// The null stream and those that don't say cudaStreamNonBlocking take turns.
void AppendInTurn(cudaStream_t stream, Work work) {
  Device& device = TheDevice();
  if (stream == device.null_stream) {
    for (cudaStream_t other : device.streams) {
      if (other->waits_for_null) AppendWait(stream, other->progress, other->progress->given);
    }
  } else if (stream->waits_for_null && device.null_stream != nullptr) {
    const auto& progress = device.null_stream->progress;
    AppendWait(stream, progress, progress->given);
  }
  Append(stream, std::move(work));
}

}  // namespace

bool IsInHostFunction() { return in_host_function; }

cudaError_t Give(cudaStream_t stream, Work work) {
  if (in_host_function) return cudaErrorNotPermitted;
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
  stream = Found(stream);
  if (stream->capture != nullptr) {
    stream->capture->nodes.push_back(std::move(work));
  } else {
    AppendInTurn(stream, std::move(work));
  }
  return cudaSuccess;
}

bool DoAtOnce(cudaStream_t stream, const Work& work) {
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
  stream = Found(stream);
  if (stream->capture != nullptr || !IsIdle(*stream)) return false;
  const auto is_no_hindrance = [](cudaStream_t other) {
    return !other->waits_for_null || IsIdle(*other);
  };
  if (stream->waits_for_null &&
      !(is_no_hindrance(Found(nullptr)) && std::ranges::all_of(device.streams, is_no_hindrance))) {
    return false;
  }
  work();
  return true;
}

cudaError_t CheckNotCaptured(cudaStream_t stream) {
  const std::lock_guard lock(TheDevice().mutex);
  const std::shared_ptr<Capture>& capture = Found(stream)->capture;
  if (capture == nullptr) return cudaSuccess;
  capture->is_broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t CheckMayCallUnsafely() {
  if (in_host_function) return cudaErrorNotPermitted;
  if (capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  const std::lock_guard lock(TheDevice().mutex);
  for (const std::shared_ptr<Capture>& capture : TheDevice().captures) {
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
  std::unique_lock lock(TheDevice().mutex);
  const std::shared_ptr<Progress> progress = Found(stream)->progress;
  WaitUntil(&lock, progress, progress->given);
}

void WaitForDevice() {
  std::unique_lock lock(TheDevice().mutex);
  std::vector<std::pair<std::shared_ptr<Progress>, uint64_t>> all;
  for (cudaStream_t stream : TheDevice().streams) {
    all.emplace_back(stream->progress, stream->progress->given);
  }
  const std::shared_ptr<Progress> null_progress = Found(nullptr)->progress;
  all.emplace_back(null_progress, null_progress->given);
  // A stream that should wait for another one and doesn't comes first, sooner or later.
  std::minstd_rand random(static_cast<unsigned>(TheOptions().seed + TheDevice().waits++));
  std::ranges::shuffle(all, random);
  for (const auto& [progress, ticket] : all) WaitUntil(&lock, progress, ticket);
}

void WaitForEvent(cudaEvent_t event) {
  std::unique_lock lock(TheDevice().mutex);
  if (event->progress == nullptr) return;
  WaitUntil(&lock, std::shared_ptr(event->progress), event->ticket);
}

}  // namespace skiff::cuda_emulation

using namespace skiff::cuda_emulation;  // NOLINT: what follows is CUDA's

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = NewStream((flags & cudaStreamNonBlocking) == 0);
  const std::lock_guard lock(TheDevice().mutex);
  TheDevice().streams.insert(*stream);
  return cudaSuccess;
}

// What it has been given will be done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Device& device = TheDevice();
  {
    std::unique_lock lock(device.mutex);
    if (stream == nullptr || Found(stream)->capture != nullptr) return cudaErrorInvalidValue;
    device.streams.erase(stream);
    WaitUntil(&lock, stream->progress, stream->progress->given);
    stream->ends = true;
    stream->given.notify_one();
  }
  stream->thread.join();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(TheDevice().mutex);
  const Progress& progress = *Found(stream)->progress;
  return progress.done == progress.given ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = new CUevent_st;
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
  if (IsInHostFunction()) return cudaErrorNotPermitted;
  const std::lock_guard lock(TheDevice().mutex);
  stream = Found(stream);
  event->capture = stream->capture;
  if (stream->capture != nullptr) return cudaSuccess;
  event->progress = stream->progress;
  event->ticket = stream->progress->given;
  return cudaSuccess;
}

// No time passes here.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard lock(TheDevice().mutex);
  for (const cudaEvent_t event : {start, end}) {
    if (event->progress == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->progress->done < event->ticket) return cudaErrorNotReady;
  }
  *milliseconds = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (IsInHostFunction()) return cudaErrorNotPermitted;
  const std::lock_guard lock(TheDevice().mutex);
  stream = Found(stream);
  if (event->capture != nullptr) {
    if (!TheDevice().captures.contains(event->capture)) return cudaErrorCapturedEvent;
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
  const std::lock_guard lock(TheDevice().mutex);
  if (event->capture != nullptr) return cudaErrorCapturedEvent;
  const bool is_done = event->progress == nullptr || event->progress->done >= event->ticket;
  return is_done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(TheDevice().mutex);
  const std::shared_ptr<Capture>& capture = Found(stream)->capture;
  *status = capture == nullptr   ? cudaStreamCaptureStatusNone
            : capture->is_broken ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(TheDevice().mutex);
  if (stream == nullptr || Found(stream)->capture != nullptr) {
    return cudaErrorStreamCaptureUnsupported;
  }
  stream->capture = std::make_shared<Capture>();
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  TheDevice().captures.insert(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(TheDevice().mutex);
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = Found(stream)->capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  for (cudaStream_t other : TheDevice().streams) {
    if (other->capture == capture) other->capture = nullptr;
  }
  TheDevice().captures.erase(capture);
  if (capture->is_broken) return cudaErrorStreamCaptureInvalidated;
  *graph = new CUgraph_st{capture->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) return cudaErrorNotSupported;
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long /*flags*/) {
  *executable = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
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
