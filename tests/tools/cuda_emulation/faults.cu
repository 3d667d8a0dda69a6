#include <cuda_runtime.h>

#include <functional>
#include <map>
#include <optional>

#include "operators/common/cuda/cuda_vectors.cuh"
#include "tests/tools/cuda_emulation/faults.h"

namespace skiff::cuda_emulation {
namespace {

constexpr int kThreads = 256;

__global__ void Sums(float* out) {
  __shared__ float of_warps[kThreads / 32];
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  float sum = static_cast<float>(threadIdx.x);
  const int reduced = __reduce_add_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x));
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFF, sum, distance);
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x % 32 == 0) atomicAdd(&total, reduced);
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kThreads / 32; ++warp) sum += of_warps[warp];
    out[0] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    out[1] = static_cast<float>(total);
    out[2] = static_cast<float>(__popc(0xFF00));
  }
}

// Which thread comes when.
__global__ void NotesOrder(float* out) {
  __shared__ int come;
  if (threadIdx.x == 0) come = 0;
  __syncthreads();
  const int turn = atomicAdd(&come, 1);
  out[turn] = static_cast<float>(threadIdx.x);
}

__global__ void ReadsUnwritten(float* out) {
  __shared__ float values[kThreads];
  if (threadIdx.x != 7) values[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void EndsBeforeBarrier(float* out) {
  if (threadIdx.x >= 100) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void HasTwoBarriers(float* out) {
  if (threadIdx.x < 100) {
    __syncthreads();
    out[threadIdx.x] = 1;
  } else {
    __syncthreads();
  }
}

__global__ void LeavesShuffle(float* out) {
  float value = 1;
  if (threadIdx.x % 32 != 5) value = __shfl_xor_sync(0xFFFFFFFF, value, 1);
  out[threadIdx.x] = value;
}

__global__ void ForgetsItself(float* out) { out[threadIdx.x] = __shfl_sync(0x0000FFFF, 1.0f, 0); }

__global__ void LeavesSharedArray(float* out) {
  __shared__ float values[kThreads];
  values[threadIdx.x + 1] = 1;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void LeavesDynamicShared(float* out) {
  extern __shared__ float values[];
  values[threadIdx.x] = 1;
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void ForgetsBarrier(float* out) {
  __shared__ float values[kThreads];
  values[threadIdx.x] = 1;
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void Reads(const float* from, float* out) { out[threadIdx.x] = from[threadIdx.x]; }

__global__ void ReadsPacks(const float* from, float* out) {
  out[threadIdx.x] = reinterpret_cast<const float4*>(from)->x;
}

__global__ void ReadsHalves(const BFloat16* from, float* out) {
  out[threadIdx.x] = LoadWide<8>(from, 8, /*is_whole=*/true).values[0];
}

__global__ void WritesHalves(BFloat16* out) {
  StoreRounded(CudaVector<float, 8>{}, 8, /*is_whole=*/true, out);
}

__global__ void WritesEachBlock(float* out) { out[threadIdx.x] = static_cast<float>(blockIdx.x); }

// Right: a warp's lanes pass values to each other through memory.
__global__ void PassesThroughWarp(float* out) {
  __shared__ float values[kThreads];
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}

// The same without an order.
__global__ void PassesThroughWarpUnordered(float* out) {
  __shared__ float values[kThreads];
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}

// A warp waits for its own lanes, though the others read the value, too. They have done so if the
// threads run as they are numbered, or if the last one to read is of that warp.
__global__ void OverwritesBehindSyncwarp(float* out) {
  __shared__ float value;
  if (threadIdx.x == 0) value = 1;
  __syncthreads();
  out[threadIdx.x] = value;
  __syncwarp();
  if (threadIdx.x == kThreads - 1) value = 2;
}

// g++ takes the check of the read for one of the write, too, if it may (tools/cuda.bzl).
__global__ void AddsWithoutAtomics(float* out) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  sum += 1;
  __syncthreads();
  out[threadIdx.x] = sum;
}

// Right: each thread has a byte of its own.
__global__ void WritesBytesOfOneWord(float* out) {
  __shared__ unsigned char values[kThreads];
  values[threadIdx.x] = static_cast<unsigned char>(threadIdx.x + 1);
  out[threadIdx.x] = static_cast<float>(values[threadIdx.x]);
}

__global__ void WritesOneByte(float* out) {
  __shared__ unsigned char values[kThreads];
  values[threadIdx.x / 2] = 1;
  out[threadIdx.x] = static_cast<float>(values[threadIdx.x / 2]);
}

__global__ void WritesBesideAtomics(float* out) {
  __shared__ int count;
  if (threadIdx.x == 5) {
    count = 0;
  } else {
    atomicAdd(&count, 1);
  }
  out[threadIdx.x] = 1;
}

// Right: each half of a warp has shuffles of its own.
__global__ void ShufflesHalves(float* out) {
  const float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x % 32 < 16) {
    out[threadIdx.x] = __shfl_xor_sync(0xFFFF, value, 1);
  } else {
    out[threadIdx.x] = __shfl_xor_sync(0xFFFF0000, value, 2);
  }
}

// Right: the block that is last reads what the others have written.
__global__ void LastBlockAdds(float* out) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    out[1 + blockIdx.x] = static_cast<float>(blockIdx.x);
    __threadfence();
    is_last = atomicAdd(out, 1.0f) == static_cast<float>(gridDim.x - 1);
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned block = 0; block < gridDim.x; ++block) sum += out[1 + block];
  out[1 + gridDim.x] = sum;
}

__global__ void TakesTooMuchShared(float* out) {
  __shared__ float values[10000];
  extern __shared__ float more[];
  values[threadIdx.x] = more[0] = 1;
  out[threadIdx.x] = values[threadIdx.x];
}

class DeviceArray {
 public:
  DeviceArray() {
    cudaMalloc(&data_, kThreads * sizeof(float));
    cudaMemset(data_, 0, kThreads * sizeof(float));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  float* data() const { return data_; }
  std::vector<float> ToHost() const {
    std::vector<float> values(kThreads);
    cudaMemcpy(values.data(), data_, kThreads * sizeof(float), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  float* data_ = nullptr;
};

// A stream, and an array, of another device than the current one.
class OtherDevice {
 public:
  OtherDevice() {
    cudaGetDevice(&current_);
    cudaSetDevice(1 - current_);
    array_.emplace();
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    cudaSetDevice(current_);
  }
  ~OtherDevice() {
    cudaStreamDestroy(stream_);
    cudaSetDevice(1 - current_);
    array_.reset();
    cudaSetDevice(current_);
  }
  OtherDevice(const OtherDevice&) = delete;
  OtherDevice& operator=(const OtherDevice&) = delete;
  const float* data() const { return array_->data(); }
  cudaStream_t stream() const { return stream_; }

 private:
  int current_ = 0;
  std::optional<DeviceArray> array_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

std::string RunFault(const std::string& name, std::vector<float>* out) {
  const DeviceArray result;
  const DeviceArray input;
  const OtherDevice other;
  float* to = result.data();
  float* freed = nullptr;
  cudaMalloc(&freed, kThreads * sizeof(float));
  cudaFree(freed);
  const std::vector<float> host(kThreads);
  const std::map<std::string, std::function<void()>> launches = {
      {"NotesOrder", [&] { NotesOrder<<<1, kThreads>>>(to); }},
      {"ReadsUnwritten", [&] { ReadsUnwritten<<<1, kThreads>>>(to); }},
      {"EndsBeforeBarrier", [&] { EndsBeforeBarrier<<<1, kThreads>>>(to); }},
      {"HasTwoBarriers", [&] { HasTwoBarriers<<<1, kThreads>>>(to); }},
      {"LeavesShuffle", [&] { LeavesShuffle<<<1, kThreads>>>(to); }},
      {"ForgetsItself", [&] { ForgetsItself<<<1, kThreads>>>(to); }},
      {"LeavesSharedArray", [&] { LeavesSharedArray<<<1, kThreads>>>(to); }},
      {"LeavesDynamicShared", [&] { LeavesDynamicShared<<<1, kThreads, 1000>>>(to); }},
      {"PassesThroughWarp", [&] { PassesThroughWarp<<<1, kThreads>>>(to); }},
      {"PassesThroughWarpUnordered", [&] { PassesThroughWarpUnordered<<<1, kThreads>>>(to); }},
      {"OverwritesBehindSyncwarp", [&] { OverwritesBehindSyncwarp<<<1, kThreads>>>(to); }},
      {"AddsWithoutAtomics", [&] { AddsWithoutAtomics<<<1, kThreads>>>(to); }},
      {"WritesBytesOfOneWord", [&] { WritesBytesOfOneWord<<<1, kThreads>>>(to); }},
      {"WritesOneByte", [&] { WritesOneByte<<<1, kThreads>>>(to); }},
      {"WritesBesideAtomics", [&] { WritesBesideAtomics<<<1, kThreads>>>(to); }},
      {"ShufflesHalves", [&] { ShufflesHalves<<<1, kThreads>>>(to); }},
      {"LastBlockAdds", [&] { LastBlockAdds<<<7, kThreads>>>(to); }},
      {"TakesTooMuchShared", [&] { TakesTooMuchShared<<<1, kThreads, 10000>>>(to); }},
      {"ForgetsBarrier", [&] { ForgetsBarrier<<<1, kThreads>>>(to); }},
      {"WritesEachBlock", [&] { WritesEachBlock<<<2, kThreads>>>(to); }},
      {"ReadsHost", [&] { Reads<<<1, kThreads>>>(host.data(), to); }},
      {"ReadsOtherDevice", [&] { Reads<<<1, kThreads>>>(other.data(), to); }},
      {"UsesStreamOfOtherDevice",
       [&] { Reads<<<1, kThreads, 0, other.stream()>>>(input.data(), to); }},
      {"ReadsNull", [&] { Reads<<<1, kThreads>>>(nullptr, to); }},
      {"ReadsFreed", [&] { Reads<<<1, kThreads>>>(freed, to); }},
      {"ReadsBehind", [&] { Reads<<<1, kThreads>>>(input.data() + 1, to); }},
      {"ReadsMisaligned", [&] { ReadsPacks<<<1, 1>>>(input.data() + 1, to); }},
      {"ReadsMisalignedHalves",
       [&] { ReadsHalves<<<1, 1>>>(reinterpret_cast<BFloat16*>(input.data() + 2), to); }},
      {"WritesMisalignedHalves",
       [&] { WritesHalves<<<1, 1>>>(reinterpret_cast<BFloat16*>(to + 2)); }},
      {"HasNoBlocks", [&] { Reads<<<0, kThreads>>>(input.data(), to); }},
      {"HasTooManyThreads", [&] { Reads<<<1, 1025>>>(input.data(), to); }},
  };
  launches.at(name)();
  cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  *out = result.ToHost();
  const std::string error = status == cudaSuccess ? "" : cudaGetErrorString(status);
  cudaGetLastError();  // the next launch is told its own errors only
  return error;
}

std::vector<float> SumsOfBlock() {
  const DeviceArray result;
  Sums<<<1, kThreads>>>(result.data());
  return result.ToHost();
}

}  // namespace skiff::cuda_emulation
