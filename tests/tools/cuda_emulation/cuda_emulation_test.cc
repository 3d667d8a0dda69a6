// What CUDA on the CPU finds in kernels. Only under --config=cuda_emulated.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/tools/cuda_emulation/faults.h"

namespace skiff::cuda_emulation {
namespace {

using ::testing::AllOf;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

// In a process of its own, as every failure makes the process fail.
#define EXPECT_FAULT(NAME, TEXT)                                        \
  EXPECT_EXIT(                                                          \
      {                                                                 \
        std::vector<float> out;                                         \
        std::fprintf(stderr, "told: %s", RunFault(NAME, &out).c_str()); \
        std::exit(0);                                                   \
      },                                                                \
      ExitedWithCode(1), HasSubstr(TEXT))

cudaStream_t NonBlockingStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

// A stream of a device, whatever device is current.
struct DeviceStream {
  explicit DeviceStream(int device) {
    int current = 0;
    cudaGetDevice(&current);
    cudaSetDevice(device);
    stream = NonBlockingStream();
    cudaSetDevice(current);
  }
  ~DeviceStream() { cudaStreamDestroy(stream); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  cudaStream_t stream;
};

// Notes that it has run.
void SetFlag(void* flag) { *static_cast<bool*>(flag) = true; }

// Work that nobody waits for is done more than a minute after it was given.
constexpr char kNeverByItself[] = "late_us=100000000";

// Runs `test`, which returns whether all was right, in a process of its own.
void ExpectWithOptions(const char* options, const std::function<bool()>& test) {
  EXPECT_EXIT(
      {
        setenv("SKIFF_CUDA_EMULATION", options, 1);
        std::exit(test() ? 0 : 1);
      },
      ExitedWithCode(0), "");
}

class CudaEmulation : public ::testing::Test {
 protected:
  // Fork alone would leave the streams' threads behind.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CudaEmulation, RunsKernels) {
  const std::vector<float> sums = SumsOfBlock();
  EXPECT_EQ(sums[0], 255 * 256 / 2);
  EXPECT_EQ(sums[1], 255 * 256 / 2);
  EXPECT_EQ(sums[2], 8);
}

// The end of a process that failed says by which seed it can be repeated.
TEST_F(CudaEmulation, EachShardHasASeedOfItsOwn) {
  const auto fail = [](const char* options) {
    setenv("TEST_SHARD_INDEX", "2", 1);
    setenv("SKIFF_CUDA_EMULATION", options, 1);
    std::vector<float> out;
    RunFault("EndsBeforeBarrier", &out);
    std::exit(0);
  };
  EXPECT_EXIT(fail(""), ExitedWithCode(1), HasSubstr("seed=3)"));
  EXPECT_EXIT(fail("seed=7"), ExitedWithCode(1), HasSubstr("seed=7)"));
}

TEST_F(CudaEmulation, EachLaunchHasAnOrderOfItsOwn) {
  ExpectWithOptions("seed=1", [] {
    std::vector<float> as_numbered(256);
    std::iota(as_numbered.begin(), as_numbered.end(), 0.0F);
    std::set<std::vector<float>> orders;
    for (int launch = 0; launch < 64; ++launch) {
      std::vector<float> order;
      if (!RunFault("NotesOrder", &order).empty()) return false;
      orders.insert(order);
    }
    return orders.contains(as_numbered) && orders.size() > 32;
  });
}

TEST_F(CudaEmulation, RefusesOptionsThatItDoesNotKnow) {
  const auto allocate_with = [](const char* options) {
    setenv("SKIFF_CUDA_EMULATION", options, 1);
    void* memory = nullptr;
    cudaMalloc(&memory, 16);
  };
  EXPECT_DEATH(allocate_with("seed=some"), "\"seed=some\": expected a name, = and a number");
  EXPECT_DEATH(allocate_with("late_us=0,seed"), "\"seed\": expected a name, = and a number");
  EXPECT_DEATH(allocate_with("seeds=2"), "\"seeds\": expected seed, late_us, ");
  EXPECT_DEATH(allocate_with("devices=0"), "0 devices: expected 1 to 16");
}

TEST_F(CudaEmulation, FillsSharedMemoryWithNan) {
  std::vector<float> out;
  EXPECT_EQ(RunFault("ReadsUnwritten", &out), "");
  EXPECT_TRUE(std::isnan(out[255 - 7]));
  EXPECT_EQ(out[0], 1);
}

TEST_F(CudaEmulation, ToldFailuresNameKernelBlockAndThread) {
  EXPECT_FAULT("ReadsBehind", "told: kernel Reads, block (0, 0, 0), thread (255, 0, 0): reads 4");
}

TEST_F(CudaEmulation, FindsBarriersThatNotAllReach) {
  EXPECT_FAULT("EndsBeforeBarrier", ", but thread (100, 0, 0) has ended");
  EXPECT_FAULT("HasTwoBarriers", "of other code");
}

TEST_F(CudaEmulation, FindsMissingLanes) {
  EXPECT_FAULT("LeavesShuffle", "for mask ffffffff, but thread (5, 0, 0) has ended");
  EXPECT_FAULT("ForgetsItself", "its mask ffff lacks the lane itself");
}

TEST_F(CudaEmulation, FindsWhatLeavesSharedMemory) {
  EXPECT_FAULT("LeavesSharedArray",
               "1024 bytes behind the beginning of the shared variable values");
  EXPECT_FAULT("LeavesDynamicShared", "of dynamic shared memory");
}

TEST_F(CudaEmulation, FindsRaces) {
  EXPECT_FAULT("ForgetsBarrier", "there since the last barrier");
  EXPECT_FAULT("AddsWithoutAtomics", "there since the last barrier");
  EXPECT_FAULT("WritesEachBlock", "another block has written there");
  EXPECT_FAULT("PassesThroughWarpUnordered", "there since the last barrier");
  EXPECT_FAULT("WritesOneByte", "has written there since the last barrier");
  EXPECT_FAULT("WritesBesideAtomics", "there since the last barrier");
}

// Returns how many of 64 launches, each of which has an order of its own, fail.
int FailedLaunches(const char* name) {
  int failed = 0;
  for (int launch = 0; launch < 64; ++launch) {
    std::vector<float> out;
    if (!RunFault(name, &out).empty()) ++failed;
  }
  return failed;
}

TEST_F(CudaEmulation, FindsRacesThatShowInSomeOrdersOnly) {
  // As the threads are numbered.
  ExpectWithOptions("seed=0", [] { return FailedLaunches("OverwritesBehindSyncwarp") == 0; });
  const auto launch_with = [](const char* options) {
    setenv("SKIFF_CUDA_EMULATION", options, 1);
    const int failed = FailedLaunches("OverwritesBehindSyncwarp");
    std::fputs(failed < 64 ? "not all launches failed" : "all launches failed", stderr);
    std::exit(0);
  };
  // A failure of any launch is one of the process.
  for (const char* options : {"seed=1", "seed=2", "seed=3"}) {
    EXPECT_EXIT(
        launch_with(options), ExitedWithCode(1),
        AllOf(HasSubstr("kernel OverwritesBehindSyncwarp"),
              HasSubstr("there since the last barrier"), HasSubstr("not all launches failed")))
        << options;
  }
}

TEST_F(CudaEmulation, AcceptsWhatIsOrdered) {
  std::vector<float> out;
  EXPECT_EQ(RunFault("PassesThroughWarp", &out), "");
  EXPECT_EQ(out[6], 7);
  EXPECT_EQ(RunFault("LastBlockAdds", &out), "");
  EXPECT_EQ(out[0], 7);
  EXPECT_EQ(out[1 + 7], 0 + 1 + 2 + 3 + 4 + 5 + 6);
  EXPECT_EQ(RunFault("WritesBytesOfOneWord", &out), "");
  EXPECT_EQ(out[5], 6);
  EXPECT_EQ(RunFault("ShufflesHalves", &out), "");
  EXPECT_EQ(out[3], 3 ^ 1);
  EXPECT_EQ(out[19], 19 ^ 2);
}

TEST_F(CudaEmulation, RefusesMoreSharedMemoryThanAKernelHas) {
  EXPECT_FAULT("TakesTooMuchShared", "50000 bytes of shared memory, expected at most 49152");
}

TEST_F(CudaEmulation, FindsAddressesThatAreNotTheDevices) {
  EXPECT_FAULT("ReadsHost", "the host's or nobody's");
  EXPECT_FAULT("ReadsNull", "the host's or nobody's");
  EXPECT_FAULT("ReadsFreed", "no memory of the device is allocated there");
  EXPECT_FAULT("ReadsMisaligned", "expected a multiple of 16");
  EXPECT_FAULT("ReadsMisalignedHalves", "expected a multiple of 16");
  EXPECT_FAULT("WritesMisalignedHalves", "expected a multiple of 16");
}

TEST_F(CudaEmulation, FindsAddressesOfAnotherDevice) {
  EXPECT_FAULT("ReadsOtherDevice", "an address of device 1, on device 0");
}

TEST_F(CudaEmulation, RunsKernelsOnEachDevice) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_GE(count, 2);
  for (int device = 0; device < count; ++device) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(SumsOfBlock()[0], 255 * 256 / 2);
  }
  EXPECT_EQ(cudaSetDevice(count), cudaErrorInvalidDevice);
  cudaGetLastError();
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(CudaEmulation, AThreadBeginsWithTheFirstDevice) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  int device = -1;
  std::thread([&] { cudaGetDevice(&device); }).join();
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(CudaEmulation, RefusesStreamsOfAnotherDevice) {
  const DeviceStream on_second(1);
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  char host[16] = {};
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  std::vector<float> out;
  EXPECT_EQ(RunFault("UsesStreamOfOtherDevice", &out), "invalid resource handle");
  const cudaStream_t stream = on_second.stream;
  EXPECT_EQ(cudaMemcpyAsync(memory, host, 16, cudaMemcpyDefault, stream),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemsetAsync(memory, 0, 16, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
            cudaErrorInvalidResourceHandle);
  // On the right device, an event of the first one is still another's.
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  cudaGetLastError();
}

TEST_F(CudaEmulation, RefusesGraphsOfAnotherDevice) {
  const DeviceStream first(0);
  const DeviceStream second(1);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(first.stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(first.stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, second.stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, first.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(first.stream), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

// Only cudaMemcpyPeer copies between devices.
TEST_F(CudaEmulation, RefusesCopiesOfTheMemoryOfAnotherDevice) {
  void* memory[2] = {};
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory[device], 16), cudaSuccess);
    ASSERT_EQ(cudaMemset(memory[device], device + 1, 16), cudaSuccess);
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  char host[16] = {};
  EXPECT_EQ(cudaMemcpy(host, memory[1], 16, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(memory[1], 0, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(memory[0], memory[1], 16, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyPeer(memory[0], 1, memory[1], 1, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyPeer(memory[0], 0, memory[1], 1, 16), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(host, memory[0], 16, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(host[15], 2);
  for (void* block : memory) EXPECT_EQ(cudaFree(block), cudaSuccess);
  cudaGetLastError();
}

// Each device has the bytes of the option.
TEST_F(CudaEmulation, CountsTheMemoryOfEachDevice) {
  size_t free_bytes = 0;
  size_t total = 0;
  void* memory = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_LE(free_bytes, total - (1 << 20));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_GT(free_bytes, total - (1 << 20));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(CudaEmulation, OnlyPortablePageLockedMemoryIsForAllDevices) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  for (const unsigned flags : {cudaHostAllocDefault, cudaHostAllocPortable}) {
    void* host = nullptr;
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    ASSERT_EQ(cudaHostAlloc(&host, 16, flags), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(memory, host, 16, cudaMemcpyDefault, nullptr),
              flags == cudaHostAllocPortable ? cudaSuccess : cudaErrorInvalidValue);
    EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
  }
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  cudaGetLastError();
}

TEST_F(CudaEmulation, RefusesImpossibleShapes) {
  std::vector<float> out;
  EXPECT_EQ(RunFault("HasNoBlocks", &out), "invalid configuration argument");
  EXPECT_EQ(RunFault("HasTooManyThreads", &out), "invalid configuration argument");
}

TEST_F(CudaEmulation, HidesTheDevicesMemoryFromTheHost) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_DEATH(*static_cast<volatile char*>(memory) = 1, "the host touches address");
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(CudaEmulation, RefusesCopiesThatLeaveAnAllocation) {
  void* memory = nullptr;
  char host[32] = {};
  ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(memory, host, 32, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, memory, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(memory, host, 16, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(CudaEmulation, RefusesCallsInHostFunctions) {
  cudaError_t error = cudaSuccess;
  const auto allocate = [](void* result) {
    void* memory = nullptr;
    *static_cast<cudaError_t*>(result) = cudaMalloc(&memory, 16);
  };
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, allocate, &error), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(error, cudaErrorNotPermitted);
}

TEST_F(CudaEmulation, ACaptureIsBrokenByCallsThatItForbids) {
  const cudaStream_t stream = NonBlockingStream();
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CudaEmulation, AnEventOfACaptureMeansNothingAfterwards) {
  const cudaStream_t stream = NonBlockingStream();
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CudaEmulation, OnlyEventsThatHavePassedHaveTimes) {
  const cudaStream_t stream = NonBlockingStream();
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  float milliseconds = -1;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(start, stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream, [](void*) {}, nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_EQ(milliseconds, 0);
  EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// A wait for earlier work, in the middle of the delay, doesn't make the next work come sooner.
TEST_F(CudaEmulation, WorkIsLateAfterAWait) {
  ExpectWithOptions("late_us=400000", [] {
    constexpr std::chrono::milliseconds kLate(400);
    const cudaStream_t stream = NonBlockingStream();
    bool first = false;
    bool second = false;
    cudaLaunchHostFunc(stream, SetFlag, &first);
    cudaStreamSynchronize(stream);
    std::this_thread::sleep_for(kLate * 3 / 4);
    const auto given = std::chrono::steady_clock::now();
    cudaLaunchHostFunc(stream, SetFlag, &second);
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return first && second && std::chrono::steady_clock::now() - given >= kLate;
  });
}

TEST_F(CudaEmulation, AWaitForOneStreamLeavesAnotherAlone) {
  ExpectWithOptions(kNeverByItself, [] {
    const cudaStream_t streams[] = {NonBlockingStream(), NonBlockingStream()};
    bool flags[] = {false, false};
    for (size_t i = 0; i < 2; ++i) cudaLaunchHostFunc(streams[i], SetFlag, &flags[i]);
    cudaStreamSynchronize(streams[1]);
    return !flags[0] && flags[1];
  });
}

// What the host does without waiting happens first.
TEST_F(CudaEmulation, WorkIsLate) {
  ExpectWithOptions(kNeverByItself, [] {
    const cudaStream_t stream = NonBlockingStream();
    bool has_run = false;
    cudaLaunchHostFunc(stream, SetFlag, &has_run);
    const bool is_late = cudaStreamQuery(stream) == cudaErrorNotReady;
    return is_late && cudaStreamSynchronize(stream) == cudaSuccess && has_run;
  });
}

TEST_F(CudaEmulation, ADestroyedStreamHasDoneItsWork) {
  const cudaStream_t stream = NonBlockingStream();
  bool has_run = false;
  ASSERT_EQ(cudaLaunchHostFunc(stream, SetFlag, &has_run), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_TRUE(has_run);
}

// Each of two threads waits for one of two streams, which wait for each other in turn.
TEST_F(CudaEmulation, ThreadsWaitForStreamsThatWaitForEachOther) {
  const cudaStream_t streams[] = {NonBlockingStream(), NonBlockingStream()};
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  for (int repetition = 0; repetition < 50; ++repetition) {
    int steps = 0;  // no atomic: the events order all of it
    for (int step = 0; step < 6; ++step) {
      const cudaStream_t stream = streams[step % 2];
      if (step > 0) {
        ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
      }
      const auto count = [](void* number) { ++*static_cast<int*>(number); };
      ASSERT_EQ(cudaLaunchHostFunc(stream, count, &steps), cudaSuccess);
      ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    }
    std::thread other([&] { cudaStreamSynchronize(streams[1]); });
    EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
    other.join();
    EXPECT_EQ(steps, 6);
  }
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  for (const cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace skiff::cuda_emulation
