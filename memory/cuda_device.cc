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
  CudaEvent() { Check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "make an event"); }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  void Wait() override { Check(cudaEventSynchronize(event_), "wait for the device"); }
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
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
    Check(cudaEventRecord(static_cast<CudaEvent*>(event)->event(), stream_), "record an event");
  }
  void Wait() override { Check(cudaStreamSynchronize(stream_), "wait for the device"); }

 private:
  cudaStream_t stream_ = nullptr;
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

Device& CudaDeviceOf(int32_t index) {
  static auto* mutex = new std::mutex;
  static auto* devices = new std::map<int32_t, std::unique_ptr<CudaDevice>>;
  const std::lock_guard lock(*mutex);
  std::unique_ptr<CudaDevice>& device = (*devices)[index];
  if (device == nullptr) device = std::make_unique<CudaDevice>(index);
  return *device;
}

}  // namespace skiff
