// An array in device memory that holds what a kernel must know about each tensor of a list.
//
// Small kernels keep the table up to date; they carry the entries among their arguments. So the CPU
// waits for nothing, holds nothing for the device to read, and may change entries at any time. A
// run in which no entry has changed launches none. A captured graph has a separate table, since the
// graph keeps its tensors, whatever later runs have. The table lasts as long as the object: the
// graph must not be launched afterwards.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "framework/base/error.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "operators/common/cuda/cuda_launch.h"

namespace skiff {

// As many entries of a table as fit into the 4 KiB of a kernel's arguments.
template <class Entry>
struct CudaTableBatch {
  static constexpr size_t kCapacity = 4000 / (sizeof(Entry) + sizeof(int32_t));
  static_assert(kCapacity > 0 && kCapacity <= kCudaThreads * 4);

  int32_t count = 0;
  int32_t indices[kCapacity];
  Entry entries[kCapacity];
};

template <class Entry>
__global__ void StoreEntries(CudaTableBatch<Entry> batch, Entry* table) {
  for (int32_t i = threadIdx.x; i < batch.count; i += blockDim.x) {
    table[batch.indices[i]] = batch.entries[i];
  }
}

// Entry: trivially copyable, with ==.
template <class Entry>
class CudaTable {
 public:
  CudaTable(Place place, size_t count)
      : stored_(count), buffer_(AllocatorOf(place), static_cast<int64_t>(count * sizeof(Entry))) {}

  // Returns the table, which holds `entries` for all work issued to the stream from now on. The
  // number of entries must always be the same.
  const Entry* Store(const std::vector<Entry>& entries, cudaStream_t stream) {
    if (stream != stream_) {
      // Work issued to the other stream may still be pending.
      stored_.assign(stored_.size(), std::nullopt);
      buffer_.RecordUse(stream);
      stream_ = stream;
    }
    if (IsCaptured(stream)) return TableOfGraph(entries, stream);
    CudaTableBatch<Entry> batch;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (stored_[i] == entries[i]) continue;
      batch.indices[batch.count] = static_cast<int32_t>(i);
      batch.entries[batch.count] = entries[i];
      ++batch.count;
      stored_[i] = entries[i];
      if (static_cast<size_t>(batch.count) == batch.kCapacity) Launch(&batch, stream);
    }
    if (batch.count > 0) Launch(&batch, stream);
    return data();
  }

 private:
  // Lets the thread allocate and copy while it captures.
  class RelaxedCapture {
   public:
    RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

   private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  };

  // Returns a table that is written now, and never again, for a graph that is launched on `stream`.
  const Entry* TableOfGraph(const std::vector<Entry>& entries, cudaStream_t stream) {
    const RelaxedCapture relaxed;
    const auto bytes = static_cast<int64_t>(entries.size() * sizeof(Entry));
    Buffer& table = *tables_of_graphs_.emplace_back(
        std::make_unique<Buffer>(AllocatorOf(buffer_.place()), bytes));
    table.RecordUse(stream);
    // On a stream of its own: cudaMemcpy would use the null stream, which a capture may forbid, and
    // may return before memory that isn't page-locked has arrived.
    cudaStream_t copies = nullptr;
    cudaError_t error = cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(table.data(), entries.data(), static_cast<size_t>(bytes),
                              cudaMemcpyHostToDevice, copies);
      const cudaError_t of_wait = cudaStreamSynchronize(copies);
      if (error == cudaSuccess) error = of_wait;
      cudaStreamDestroy(copies);
    }
    SKIFF_ENFORCE(error == cudaSuccess, kIo,
                  "table of a list of tensors: for a graph: ", cudaGetErrorString(error));
    return static_cast<const Entry*>(table.data());
  }

  static bool IsCaptured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream, &status);
    SKIFF_ENFORCE(error == cudaSuccess, kIo,
                  "table of a list of tensors: state of the stream: ", cudaGetErrorString(error));
    return status != cudaStreamCaptureStatusNone;
  }

  Entry* data() const { return static_cast<Entry*>(buffer_.data()); }

  void Launch(CudaTableBatch<Entry>* batch, cudaStream_t stream) {
    StoreEntries<<<1, kCudaThreads, 0, stream>>>(*batch, data());
    CheckLaunch("table of a list of tensors");
    batch->count = 0;
  }

  std::vector<std::optional<Entry>> stored_;
  Buffer buffer_;
  std::vector<std::unique_ptr<Buffer>> tables_of_graphs_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace skiff
