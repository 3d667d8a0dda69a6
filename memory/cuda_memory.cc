#include "memory/cuda_memory.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

// Makes a device the current one for a scope. Also lets the calls in it go on while this thread
// captures a graph: by default, calls such as cudaMalloc would fail and invalidate the capture.
class DeviceScope {
 public:
  // -1: keeps the current device.
  explicit DeviceScope(int32_t device) {
    cudaGetDevice(&outer_device_);
    device_ = device >= 0 ? device : outer_device_;
    if (device >= 0) MakeCurrent(device);
    cudaThreadExchangeStreamCaptureMode(&capture_mode_);
  }
  ~DeviceScope() {
    cudaThreadExchangeStreamCaptureMode(&capture_mode_);
    if (device_ != outer_device_) cudaSetDevice(outer_device_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  static void MakeCurrent(int32_t device) {
    cudaSetDevice(device);
#if CUDART_VERSION < 12000
    // The driver's functions need a context; before CUDA 12, cudaSetDevice didn't make one.
    cudaFree(nullptr);
#endif
  }

  int device_ = 0;
  int outer_device_ = 0;
  cudaStreamCaptureMode capture_mode_ = cudaStreamCaptureModeRelaxed;
};

std::string Describe(const char* call, cudaError_t status) {
  // The runtime keeps the last error until it is read. Running out of memory is no error of whoever
  // calls cudaGetLastError next, such as a launch of a kernel.
  cudaGetLastError();
  return StrCat(call, ": ", cudaGetErrorString(status));
}

class CudaMallocSource final : public SegmentSource {
 public:
  explicit CudaMallocSource(int32_t device) : device_(device) {}

  void* Reserve(int64_t bytes, int64_t /*alignment: 256 at least*/) override {
    const DeviceScope scope(device_);
    void* segment = nullptr;
    const cudaError_t status = cudaMalloc(&segment, static_cast<size_t>(bytes));
    if (status == cudaSuccess) return segment;
    failure_ = Describe("cudaMalloc", status);
    return nullptr;
  }
  // cudaFree waits for the device itself, so no kernel can still be using the segment.
  void Release(void* segment, int64_t /*bytes*/) noexcept override {
    const DeviceScope scope(device_);
    cudaFree(segment);
  }
  bool is_host_memory() const override { return false; }
  std::string failure() const override { return failure_; }

 private:
  const int32_t device_;
  std::string failure_;
};

class CudaPinnedSource final : public SegmentSource {
 public:
  void* Reserve(int64_t bytes, int64_t /*alignment: a page*/) override {
    const DeviceScope scope(-1);
    void* segment = nullptr;
    const cudaError_t status =
        cudaHostAlloc(&segment, static_cast<size_t>(bytes), cudaHostAllocPortable);
    if (status == cudaSuccess) return segment;
    failure_ = Describe("cudaHostAlloc", status);
    return nullptr;
  }
  void Release(void* segment, int64_t /*bytes*/) noexcept override {
    const DeviceScope scope(-1);
    cudaFreeHost(segment);
  }
  bool is_host_memory() const override { return true; }
  std::string failure() const override { return failure_; }

 private:
  std::string failure_;
};

// The driver's functions for mapping memory to addresses, which the runtime doesn't offer. They are
// looked up through the runtime, so nothing links to libcuda, which only machines with a GPU have.
struct Driver {
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&cuDeviceTotalMem) device_total_mem = nullptr;
  decltype(&cuGetErrorString) get_error_string = nullptr;
  decltype(&cuMemGetAllocationGranularity) get_granularity = nullptr;
  decltype(&cuMemAddressReserve) address_reserve = nullptr;
  decltype(&cuMemAddressFree) address_free = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  bool is_complete = true;
};

template <typename Function>
void Find(const char* name, Function* function, Driver* driver) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  // The signatures of CUDA 11.2, which are still those that cuda.h declares.
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &entry, 11020, cudaEnableDefault, &found);
#elif CUDART_VERSION >= 12000
  const cudaError_t status = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#else
  const cudaError_t status = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault);
  if (entry != nullptr) found = cudaDriverEntryPointSuccess;
#endif
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess || entry == nullptr) {
    cudaGetLastError();
    driver->is_complete = false;
    return;
  }
  *function = reinterpret_cast<Function>(entry);
}

Driver FindDriver() {
  Driver driver;
  Find("cuDeviceGet", &driver.device_get, &driver);
  Find("cuDeviceGetAttribute", &driver.device_get_attribute, &driver);
  Find("cuDeviceTotalMem", &driver.device_total_mem, &driver);
  Find("cuGetErrorString", &driver.get_error_string, &driver);
  Find("cuMemGetAllocationGranularity", &driver.get_granularity, &driver);
  Find("cuMemAddressReserve", &driver.address_reserve, &driver);
  Find("cuMemAddressFree", &driver.address_free, &driver);
  Find("cuMemCreate", &driver.create, &driver);
  Find("cuMemRelease", &driver.release, &driver);
  Find("cuMemMap", &driver.map, &driver);
  Find("cuMemUnmap", &driver.unmap, &driver);
  Find("cuMemSetAccess", &driver.set_access, &driver);
  return driver;
}

const Driver& TheDriver() {
  static const Driver driver = FindDriver();
  return driver;
}

bool HasVirtualMemory(CUdevice device) {
  int has = 0;
  const CUresult status = TheDriver().device_get_attribute(
      &has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
  return status == CUDA_SUCCESS && has != 0;
}

CUdeviceptr Pointer(void* address) { return reinterpret_cast<CUdeviceptr>(address); }

// Memory in CUDA's virtual memory management: addresses are reserved once (cuMemAddressReserve),
// physical memory is made (cuMemCreate), mapped (cuMemMap) and made accessible (cuMemSetAccess).
class CudaVirtualMemory final : public VirtualMemory {
 public:
  CudaVirtualMemory(int32_t device, const CUmemAllocationProp& properties, int64_t granularity)
      : device_(device), properties_(properties), granularity_(granularity) {}

  int64_t granularity() const override { return granularity_; }

  void* ReserveAddresses(int64_t bytes) override {
    const DeviceScope scope(device_);
    CUdeviceptr begin = 0;
    const CUresult status =
        TheDriver().address_reserve(&begin, static_cast<size_t>(bytes), 0, 0, 0);
    return Succeeds("cuMemAddressReserve", status) ? reinterpret_cast<void*>(begin) : nullptr;
  }
  void FreeAddresses(void* begin, int64_t bytes) noexcept override {
    const DeviceScope scope(device_);
    TheDriver().address_free(Pointer(begin), static_cast<size_t>(bytes));
  }

  bool Map(void* chunk, int64_t bytes) override {
    const DeviceScope scope(device_);
    CUmemGenericAllocationHandle memory = 0;
    CUresult status = TheDriver().create(&memory, static_cast<size_t>(bytes), &properties_, 0);
    if (!Succeeds("cuMemCreate", status)) return false;
    status = TheDriver().map(Pointer(chunk), static_cast<size_t>(bytes), 0, memory, 0);
    // The mapping keeps a reference to the memory. Without this one, Unmap frees it, and a failed
    // mapping leaks nothing.
    TheDriver().release(memory);
    return Succeeds("cuMemMap", status);
  }
  void Unmap(void* chunk, int64_t bytes) noexcept override {
    const DeviceScope scope(device_);
    TheDriver().unmap(Pointer(chunk), static_cast<size_t>(bytes));
  }

  bool Allow(void* begin, int64_t bytes) override {
    const DeviceScope scope(device_);
    const CUmemAccessDesc access{.location = properties_.location,
                                 .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return Succeeds("cuMemSetAccess",
                    TheDriver().set_access(Pointer(begin), static_cast<size_t>(bytes), &access, 1));
  }

  void Synchronize() noexcept override {
    const DeviceScope scope(device_);
    cudaDeviceSynchronize();
  }

  std::string failure() const override { return failure_; }

 private:
  bool Succeeds(const char* call, CUresult status) {
    if (status == CUDA_SUCCESS) return true;
    const char* text = nullptr;
    TheDriver().get_error_string(status, &text);
    failure_ = StrCat(call, ": ", text == nullptr ? "unknown error" : text);
    return false;
  }

  const int32_t device_;
  const CUmemAllocationProp properties_;
  const int64_t granularity_;
  std::string failure_;
};

// Events without timing, which are cheaper to record. They are recycled: to create one may wait for
// the driver.
class CudaEvents final : public StreamEvents {
 public:
  explicit CudaEvents(int32_t device) : device_(device) {}

  void* Record(void* stream) noexcept override {
    const DeviceScope scope(device_);
    Event* event = Take();
    if (event != nullptr) {
      if (cudaEventRecord(event->event, static_cast<cudaStream_t>(stream)) == cudaSuccess) {
        return event;
      }
      Recycle(event);
    }
    // Without an event, waiting here and now is as safe, only slower.
    cudaGetLastError();
    cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
    return nullptr;
  }

  // An event that reports an error never will be done otherwise: its stream has failed.
  bool IsDone(void* event) noexcept override {
    const DeviceScope scope(-1);
    const cudaError_t status = cudaEventQuery(static_cast<Event*>(event)->event);
    if (status != cudaSuccess) cudaGetLastError();
    return status != cudaErrorNotReady;
  }
  void Wait(void* event) noexcept override {
    const DeviceScope scope(-1);
    cudaEventSynchronize(static_cast<Event*>(event)->event);
  }
  void Recycle(void* event) noexcept override {
    auto* recycled = static_cast<Event*>(event);
    free_[recycled->device].push_back(recycled);
  }

 private:
  struct Event {
    cudaEvent_t event;
    int device;  // an event is recorded on streams of its device alone
  };

  Event* Take() {
    int device = 0;
    cudaGetDevice(&device);
    std::vector<Event*>& free = free_[device];
    if (!free.empty()) {
      Event* event = free.back();
      free.pop_back();
      return event;
    }
    cudaEvent_t event = nullptr;
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return nullptr;
    return new Event{event, device};
  }

  const int32_t device_;
  std::map<int, std::vector<Event*>> free_;
};

}  // namespace

std::unique_ptr<SegmentSource> MakeCudaMallocSource(int32_t device) {
  return std::make_unique<CudaMallocSource>(device);
}

std::unique_ptr<SegmentSource> MakeCudaPinnedSource() {
  return std::make_unique<CudaPinnedSource>();
}

std::unique_ptr<VirtualMemory> MakeCudaVirtualMemory(int32_t device) {
  const Driver& driver = TheDriver();
  CUdevice of_driver = 0;
  if (!driver.is_complete || driver.device_get(&of_driver, device) != CUDA_SUCCESS ||
      !HasVirtualMemory(of_driver)) {
    return nullptr;
  }
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  size_t granularity = 0;
  const CUresult status =
      driver.get_granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (status != CUDA_SUCCESS || granularity == 0) return nullptr;
  return std::make_unique<CudaVirtualMemory>(device, properties, static_cast<int64_t>(granularity));
}

std::unique_ptr<StreamEvents> MakeCudaEvents(int32_t device) {
  return std::make_unique<CudaEvents>(device);
}

int64_t CudaMemoryBytes(int32_t device) {
  const Driver& driver = TheDriver();
  CUdevice of_driver = 0;
  size_t bytes = 0;
  if (driver.device_get == nullptr || driver.device_total_mem == nullptr) return 0;
  if (driver.device_get(&of_driver, device) != CUDA_SUCCESS) return 0;
  if (driver.device_total_mem(&bytes, of_driver) != CUDA_SUCCESS) return 0;
  return static_cast<int64_t>(bytes);
}

}  // namespace skiff
