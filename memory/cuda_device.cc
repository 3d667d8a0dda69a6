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

// Makes a device the thread's current one, which new streams and events belong to.
class CurrentDevice {
 public:
  explicit CurrentDevice(int32_t index) {
    Check(cudaGetDevice(&before_), "current device");
    if (before_ != index) Check(cudaSetDevice(index), "set the device");
    is_changed_ = before_ != index;
  }
  ~CurrentDevice() {
    if (is_changed_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool is_changed_ = false;
};

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent() { Check(cudaEventCreate(&event_), "make an event"); }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  void Wait() override { Check(cudaEventSynchronize(event_), "wait for the device"); }
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
  CudaStream() {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
  }
  ~CudaStream() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  void* handle() const override { return stream_; }
  void Copy(void* to, Place, const void* from, Place, size_t bytes) override {
    Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy");
  }
  void Fill(void* to, unsigned char byte, size_t bytes) override {
    Check(cudaMemsetAsync(to, byte, bytes, stream_), "fill");
  }
  void Record(DeviceEvent* event) override {
    RefuseInCapture();
    Check(cudaEventRecord(static_cast<CudaEvent*>(event)->event(), stream_), "record an event");
  }
  void WaitFor(const DeviceEvent& event) override {
    RefuseInCapture();
    Check(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).event(), 0),
          "wait for an event");
  }
  void Call(void (*function)(void*), void* argument) override {
    Check(cudaLaunchHostFunc(stream_, function, argument), "call a function of the host");
  }
  void Launch(const DeviceGraph& graph) override {
    Check(cudaGraphLaunch(static_cast<const CudaGraph&>(graph).graph(), stream_), "launch a graph");
  }
  // Other threads may allocate and copy all the while.
  void BeginCapture() override {
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture a graph");
    captures_ = true;
  }
  std::unique_ptr<DeviceGraph> EndCapture() override {
    captures_ = false;
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

  cudaStream_t stream_ = nullptr;
  bool captures_ = false;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int32_t index) : index_(index), allocator_(CudaAllocatorOf(index)) {}
  Allocator& allocator() override { return allocator_; }
  Allocator& pinned_allocator() override { return CudaPinnedAllocator(); }
  std::unique_ptr<DeviceStream> MakeStream() override {
    // Kernels and libraries run on the thread's current device, which nobody changes.
    SKIFF_ENFORCE(index_ == 0, kUnimplemented, "a stream of cuda:", index_,
                  ": expected cuda:0, the first device that CUDA_VISIBLE_DEVICES names");
    const CurrentDevice current(index_);
    return std::make_unique<CudaStream>();
  }
  std::unique_ptr<DeviceEvent> MakeEvent() override {
    const CurrentDevice current(index_);
    return std::make_unique<CudaEvent>();
  }
  // cudaMemcpy alone waits for no stream that is non-blocking, and it returns before bytes from
  // pageable memory have arrived: work of such a stream could run before them.
  void CopyNow(void* to, Place to_place, const void* from, Place from_place,
               size_t bytes) override {
    const CurrentDevice current(index_);
    cudaError_t status = cudaDeviceSynchronize();
    if (status == cudaSuccess) status = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
    if (status == cudaSuccess) status = cudaDeviceSynchronize();
    SKIFF_ENFORCE(status == cudaSuccess, kIo, "copy from ", from_place, " to ", to_place, ": ",
                  cudaGetErrorString(status));
  }

 private:
  const int32_t index_;
  Allocator& allocator_;
};

}  // namespace

bool HasCudaDevice() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count > 0;
  // What failed is not for whoever looks for the last error next.
  cudaGetLastError();
  return false;
}

Device& CudaDeviceOf(int32_t index) {
  static auto* mutex = new std::mutex;
  static auto* devices = new std::map<int32_t, std::unique_ptr<CudaDevice>>;
  const std::lock_guard lock(*mutex);
  std::unique_ptr<CudaDevice>& device = (*devices)[index];
  if (device == nullptr) device = std::make_unique<CudaDevice>(index);
  return *device;
}

}  // namespace skiff
