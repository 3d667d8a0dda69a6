#include "memory/cuda_device.h"

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <mutex>

#include "framework/base/error.h"
#include "memory/cuda_allocator.h"

namespace skiff {
namespace {

void Check(cudaError_t status, const char* what) {
  SKIFF_ENFORCE(status == cudaSuccess, kIo, what, ": ", cudaGetErrorString(status));
}

// Makes a device the thread's current one, and returns the one that was current before.
int32_t MakeCurrent(int32_t index) {
  int before = 0;
  Check(cudaGetDevice(&before), "current device");
  if (before != index) Check(cudaSetDevice(index), "set the device");
  return before;
}

// Makes a device the thread's current one: new streams and events belong to it, and it must be
// current for whoever appends to a stream.
class CurrentDevice {
 public:
  explicit CurrentDevice(int32_t index) : index_(index), before_(MakeCurrent(index)) {}
  ~CurrentDevice() {
    if (before_ != index_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  const int32_t index_;
  const int32_t before_;
};

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent() { Check(cudaEventCreate(&event_), "make an event"); }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  void Wait() override { Check(cudaEventSynchronize(event_), "wait for the device"); }
  bool HasPassed() override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status != cudaErrorNotReady) Check(status, "wait for the device");
    return status == cudaSuccess;
  }
  double SecondsSince(const DeviceEvent& earlier) const override {
    float milliseconds = 0;
    Check(
        cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event(), event_),
        "time between events");
    return 1e-3 * static_cast<double>(milliseconds);
  }
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(cudaGraph_t graph) {
    Check(cudaGraphInstantiateWithFlags(&graph_, graph, 0), "make a graph");
  }
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  cudaGraphExec_t graph() const { return graph_; }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

class CudaStream final : public DeviceStream {
 public:
  explicit CudaStream(int32_t device) : device_(device) {
    const CurrentDevice current(device_);
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
  }
  ~CudaStream() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  void* handle() const override { return stream_; }
  void Copy(void* to, Place to_place, const void* from, Place from_place, size_t bytes) override {
    RefuseOtherDevice(to_place);
    RefuseOtherDevice(from_place);
    const CurrentDevice current(device_);
    Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy");
  }
  void Fill(void* to, unsigned char byte, size_t bytes) override {
    const CurrentDevice current(device_);
    Check(cudaMemsetAsync(to, byte, bytes, stream_), "fill");
  }
  void Record(DeviceEvent* event) override {
    RefuseInCapture();
    const CurrentDevice current(device_);
    Check(cudaEventRecord(static_cast<CudaEvent*>(event)->event(), stream_), "record an event");
  }
  void WaitFor(const DeviceEvent& event) override {
    RefuseInCapture();
    const CurrentDevice current(device_);
    Check(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).event(), 0),
          "wait for an event");
  }
  void Call(void (*function)(void*), void* argument) override {
    const CurrentDevice current(device_);
    Check(cudaLaunchHostFunc(stream_, function, argument), "call a function of the host");
  }
  void Launch(const DeviceGraph& graph) override {
    const CurrentDevice current(device_);
    Check(cudaGraphLaunch(static_cast<const CudaGraph&>(graph).graph(), stream_), "launch a graph");
  }
  // Other threads may allocate and copy all the while.
  void BeginCapture() override {
    const CurrentDevice current(device_);
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture a graph");
    captures_ = true;
  }
  std::unique_ptr<DeviceGraph> EndCapture() override {
    captures_ = false;
    const CurrentDevice current(device_);
    cudaGraph_t captured = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream_, &captured);
    // What has spoiled the capture is no failure of the calls that follow.
    if (status != cudaSuccess) cudaGetLastError();
    Check(status, "capture a graph");
    const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> owner(captured,
                                                                         &cudaGraphDestroy);
    return std::make_unique<CudaGraph>(captured);
  }
  void Wait() override { Check(cudaStreamSynchronize(stream_), "wait for the device"); }

 private:
  // In a graph, events would be edges instead of points in the stream.
  void RefuseInCapture() const {
    SKIFF_ENFORCE(!captures_, kFailedPrecondition, "an event while the stream is captured");
  }
  void RefuseOtherDevice(Place place) const {
    SKIFF_ENFORCE(place.is_cpu() || place.index == device_, kInvalidArgument,
                  "a copy in a stream of ", Place::Cuda(device_), " from or to ", place,
                  ": expected the CPU or the stream's device");
  }

  const int32_t device_;
  cudaStream_t stream_ = nullptr;
  bool captures_ = false;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int32_t index) : index_(index), allocator_(CudaAllocatorOf(index)) {}
  Allocator& allocator() override { return allocator_; }
  Allocator& pinned_allocator() override { return CudaPinnedAllocator(); }
  std::unique_ptr<DeviceStream> MakeStream() override {
    return std::make_unique<CudaStream>(index_);
  }
  std::unique_ptr<DeviceEvent> MakeEvent() override {
    const CurrentDevice current(index_);
    return std::make_unique<CudaEvent>();
  }
  // cudaMemcpy alone waits for no stream that is non-blocking, and it returns before bytes from
  // pageable memory have arrived: work of such a stream could run before them.
  void CopyNow(void* to, Place to_place, const void* from, Place from_place,
               size_t bytes) override {
    const bool is_between_devices = !to_place.is_cpu() && !from_place.is_cpu();
    cudaError_t status = WaitForStreams(to_place);
    if (status == cudaSuccess) status = WaitForStreams(from_place);
    if (status == cudaSuccess) {
      const CurrentDevice current(index_);
      status = is_between_devices
                   ? cudaMemcpyPeer(to, to_place.index, from, from_place.index, bytes)
                   : cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
    }
    if (status == cudaSuccess) status = WaitForStreams(to_place);
    if (status == cudaSuccess) status = WaitForStreams(from_place);
    SKIFF_ENFORCE(status == cudaSuccess, kIo, "copy from ", from_place, " to ", to_place, ": ",
                  cudaGetErrorString(status));
  }

 private:
  static cudaError_t WaitForStreams(Place place) {
    if (place.is_cpu()) return cudaSuccess;
    const CurrentDevice current(place.index);
    return cudaDeviceSynchronize();
  }

  int32_t Enter() override { return MakeCurrent(index_); }
  void Leave(int32_t outer) noexcept override {
    if (outer != index_) cudaSetDevice(outer);
  }

  const int32_t index_;
  Allocator& allocator_;
};

}  // namespace

int32_t CudaDeviceCount() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  // What failed is not for whoever looks for the last error next.
  cudaGetLastError();
  return 0;
}

Device& CudaDeviceOf(int32_t index) {
  static auto* mutex = new std::mutex;
  static auto* devices = new std::map<int32_t, std::unique_ptr<CudaDevice>>;
  const std::lock_guard lock(*mutex);
  const auto found = devices->find(index);
  if (found != devices->end()) return *found->second;
  return *devices->emplace(index, std::make_unique<CudaDevice>(index)).first->second;
}

}  // namespace skiff
