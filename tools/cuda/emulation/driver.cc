// The driver's functions, which are found by name: the mapping of memory to addresses.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <mutex>

#include "tools/cuda/emulation/devices.h"
#include "tools/cuda/emulation/memory.h"

namespace skiff::cuda_emulation {
namespace {

constexpr size_t kGranularity = size_t{2} << 20;

bool IsDevice(int device) { return device >= 0 && device < DeviceCount(); }

void* Address(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

bool IsOf(int device, const void* address) {
  const DeviceMemory& memory = DeviceMemory::Get();
  return memory.IsOfDevice(address) && memory.DeviceOf(address) == device;
}

struct Handle {
  int device;
  size_t bytes;
  int uses;  // by its owner, and by mappings
};

// Never destroyed.
struct Mappings {
  std::mutex mutex;
  std::map<CUdeviceptr, Handle*> of_addresses;
};

Mappings& TheMappings() {
  static auto& mappings = *new Mappings;
  return mappings;
}

void Drop(Handle* handle) {
  if (--handle->uses > 0) return;
  DeviceMemory::Get().GiveBack(handle->device, handle->bytes);
  delete handle;
}

CUresult DeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return IsDevice(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult DeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult DeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = DeviceMemory::Get().total_bytes();
  return CUDA_SUCCESS;
}

CUresult ErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS               ? "no error"
          : error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
                                              : "invalid argument";
  return CUDA_SUCCESS;
}

CUresult MemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                     CUmemAllocationGranularity_flags) {
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

// Here, the addresses are the current device's.
CUresult MemAddressReserve(CUdeviceptr* begin, size_t bytes, size_t, CUdeviceptr,
                           unsigned long long) {
  if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  *begin = reinterpret_cast<CUdeviceptr>(DeviceMemory::Get().Reserve(CurrentDevice(), bytes));
  return *begin == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult MemAddressFree(CUdeviceptr begin, size_t bytes) {
  DeviceMemory::Get().Release(Address(begin), bytes);
  return CUDA_SUCCESS;
}

CUresult MemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                   const CUmemAllocationProp* properties, unsigned long long) {
  if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  const int device = properties->location.id;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!DeviceMemory::Get().Take(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Handle{device, bytes, 1});
  return CUDA_SUCCESS;
}

CUresult MemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(TheMappings().mutex);
  Drop(reinterpret_cast<Handle*>(handle));
  return CUDA_SUCCESS;
}

// A whole handle, once, to addresses of its device: the memory itself begins with its mapping.
CUresult MemMap(CUdeviceptr begin, size_t bytes, size_t offset, CUmemGenericAllocationHandle memory,
                unsigned long long) {
  auto* handle = reinterpret_cast<Handle*>(memory);
  const std::lock_guard lock(TheMappings().mutex);
  if (offset != 0 || bytes != handle->bytes || !IsOf(handle->device, Address(begin)) ||
      !DeviceMemory::Get().Map(Address(begin), bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ++handle->uses;
  TheMappings().of_addresses[begin] = handle;
  return CUDA_SUCCESS;
}

CUresult MemUnmap(CUdeviceptr begin, size_t bytes) {
  Mappings& mappings = TheMappings();
  const std::lock_guard lock(mappings.mutex);
  if (!DeviceMemory::Get().Unmap(Address(begin), bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto first = mappings.of_addresses.lower_bound(begin);
  const auto behind = mappings.of_addresses.lower_bound(begin + bytes);
  for (auto at = first; at != behind; ++at) Drop(at->second);
  mappings.of_addresses.erase(first, behind);
  return CUDA_SUCCESS;
}

CUresult MemSetAccess(CUdeviceptr begin, size_t bytes, const CUmemAccessDesc* access,
                      size_t count) {
  if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
      !IsOf(access->location.id, Address(begin))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return DeviceMemory::Get().Allow(Address(begin), bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Function>
bool IsNamed(const char* name, const char* wanted, Function* found, void** entry) {
  if (std::strcmp(name, wanted) != 0) return false;
  *entry = reinterpret_cast<void*>(found);
  return true;
}

bool Find(const char* name, void** entry) {
  return IsNamed<decltype(cuDeviceGet)>(name, "cuDeviceGet", DeviceGet, entry) ||
         IsNamed<decltype(cuDeviceGetAttribute)>(name, "cuDeviceGetAttribute", DeviceGetAttribute,
                                                 entry) ||
         IsNamed<decltype(cuDeviceTotalMem)>(name, "cuDeviceTotalMem", DeviceTotalMem, entry) ||
         IsNamed<decltype(cuGetErrorString)>(name, "cuGetErrorString", ErrorString, entry) ||
         IsNamed<decltype(cuMemGetAllocationGranularity)>(name, "cuMemGetAllocationGranularity",
                                                          MemGetAllocationGranularity, entry) ||
         IsNamed<decltype(cuMemAddressReserve)>(name, "cuMemAddressReserve", MemAddressReserve,
                                                entry) ||
         IsNamed<decltype(cuMemAddressFree)>(name, "cuMemAddressFree", MemAddressFree, entry) ||
         IsNamed<decltype(cuMemCreate)>(name, "cuMemCreate", MemCreate, entry) ||
         IsNamed<decltype(cuMemRelease)>(name, "cuMemRelease", MemRelease, entry) ||
         IsNamed<decltype(cuMemMap)>(name, "cuMemMap", MemMap, entry) ||
         IsNamed<decltype(cuMemUnmap)>(name, "cuMemUnmap", MemUnmap, entry) ||
         IsNamed<decltype(cuMemSetAccess)>(name, "cuMemSetAccess", MemSetAccess, entry);
}

}  // namespace
}  // namespace skiff::cuda_emulation

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** entry, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const bool is_found = skiff::cuda_emulation::Find(name, entry);
  *result = is_found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
