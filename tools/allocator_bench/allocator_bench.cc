// Times Skiff's CPU allocator beside malloc, in turn, on the same work:
//
//   allocator_bench
//   allocator_bench --rounds=9 --threads=4 --json
#include <gflags/gflags.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "memory/caching_allocator.h"
#include "memory/cpu_allocator.h"
#include "tools/benchmark/process_memory.h"
#include "tools/benchmark/run_times.h"

DEFINE_int32(rounds, 5, "How often each case runs; the median is printed.");
DEFINE_int32(threads, 2, "Threads of the multi-threaded cases.");
DEFINE_bool(json, false, "Print one line with a JSON object per case.");

namespace skiff {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;
constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = 2 * kMegabyte;

struct Memory {
  std::function<void*(int64_t bytes)> allocate;
  std::function<void(void* block, int64_t bytes)> free;
};

// `huge_pages`: requests them for large blocks as the allocator does, but caches nothing. The
// comparison then shows what caching alone gains.
Memory Malloc(bool huge_pages) {
  const auto allocate = [huge_pages](int64_t bytes) {
    const bool is_huge = huge_pages && bytes >= 2 * kHugePage;
    void* block = nullptr;
    const int error =
        posix_memalign(&block, is_huge ? kHugePage : kBufferAlignment, static_cast<size_t>(bytes));
    SKIFF_ENFORCE(error == 0, kResourceExhausted, "malloc of ", bytes, " bytes");
    if (is_huge) {
      madvise(block, static_cast<size_t>(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
    }
    return block;
  };
  return {allocate, [](void* block, int64_t /*bytes*/) { std::free(block); }};
}

Memory Of(Allocator* allocator) {
  return {[allocator](int64_t bytes) { return allocator->Allocate(bytes); },
          [allocator](void* block, int64_t bytes) { allocator->Free(block, bytes); }};
}

// A page takes memory, and a page fault, only when it is first written.
void TouchPages(void* block, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kPage) static_cast<volatile char*>(block)[i] = 1;
}

// The arenas of two plans of different sizes, one after the other.
void AlternatingArenas(const Memory& memory) {
  for (int i = 0; i < 20; ++i) {
    const int64_t bytes = (i % 2 == 0 ? 240 : 180) * kMegabyte;
    void* arena = memory.allocate(bytes);
    TouchPages(arena, bytes);
    memory.free(arena, bytes);
  }
}

// The batches of a reader, a few of which exist at a time: 64 float32 images of 3x224x224 each.
void Batches(const Memory& memory) {
  constexpr int64_t kBytes = 64 * 3 * 224 * 224 * 4;
  std::vector<void*> queue;
  for (int i = 0; i < 60; ++i) {
    queue.push_back(memory.allocate(kBytes));
    TouchPages(queue.back(), kBytes);
    if (queue.size() < 3) continue;
    memory.free(queue.front(), kBytes);
    queue.erase(queue.begin());
  }
  for (void* batch : queue) memory.free(batch, kBytes);
}

// Sizes up to 8 KiB, spread evenly over powers of two, in random order. Of 256 live blocks each
// allocation replaces one, so blocks live for 256 allocations on average and fragment the memory.
void SmallBlocks(const Memory& memory, uint32_t seed) {
  std::vector<std::pair<void*, int64_t>> held(256);
  uint32_t random = seed;
  for (int i = 0; i < 200000; ++i) {
    random = random * 1664525 + 1013904223;
    auto& [block, bytes] = held[(random >> 8) % held.size()];
    if (block != nullptr) memory.free(block, bytes);
    bytes = 1 + (random >> 4) % (int64_t{64} << (random >> 29));
    block = memory.allocate(bytes);
    *static_cast<volatile char*>(block) = 1;
  }
  for (const auto& [block, bytes] : held) {
    if (block != nullptr) memory.free(block, bytes);
  }
}

void SmallBlocksInThreads(const Memory& memory) {
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < FLAGS_threads; ++i) {
    threads.emplace_back([&memory, i] { SmallBlocks(memory, static_cast<uint32_t>(i)); });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Case {
  std::string name;
  int64_t allocations;
  std::function<void(const Memory&)> work;
};

struct Figures {
  std::vector<double> milliseconds;
  // Resident memory gained by all rounds of this allocator: what it caches.
  double kept_megabytes = 0;
};

void Measure(const Case& timed, const Memory& memory, Figures* figures) {
  const double before = RssMegabytes();
  figures->milliseconds.push_back(SecondsOf([&] { timed.work(memory); }) * 1e3);
  figures->kept_megabytes += RssMegabytes() - before;
}

double Median(const Figures& figures) { return PercentilesOf(figures.milliseconds).median; }

struct CaseFigures {
  Figures skiff;
  Figures plain_malloc;
  Figures huge_malloc;
};

void PrintJson(const Case& timed, const CaseFigures& figures,
               const AllocatorStatistics& statistics) {
  std::cout << nlohmann::json{{"case", timed.name},
                              {"skiff_milliseconds", Median(figures.skiff)},
                              {"malloc_milliseconds", Median(figures.plain_malloc)},
                              {"huge_malloc_milliseconds", Median(figures.huge_malloc)},
                              {"skiff_kept_megabytes", figures.skiff.kept_megabytes},
                              {"malloc_kept_megabytes", figures.plain_malloc.kept_megabytes},
                              {"peak_live_bytes", statistics.peak_bytes},
                              {"peak_reserved_bytes", statistics.peak_reserved_bytes},
                              {"allocations", statistics.allocations},
                              {"system_allocations", statistics.system_allocations}}
            << std::endl;
}

void PrintRow(const Case& timed, const CaseFigures& figures,
              const AllocatorStatistics& statistics) {
  const double skiff = Median(figures.skiff);
  std::printf(
      "%-22s %9.2f ms, %7.0f ns an allocation; malloc / skiff %7.2f, with huge pages %7.2f; kept "
      "%.0f MB, malloc %.0f; peak %.1f MB live, %.1f reserved\n",
      timed.name.c_str(), skiff, skiff * 1e6 / static_cast<double>(timed.allocations),
      Median(figures.plain_malloc) / skiff, Median(figures.huge_malloc) / skiff,
      figures.skiff.kept_megabytes, figures.plain_malloc.kept_megabytes,
      static_cast<double>(statistics.peak_bytes) / kMegabyte,
      static_cast<double>(statistics.peak_reserved_bytes) / kMegabyte);
}

int Main() {
  SKIFF_ENFORCE(FLAGS_rounds > 0 && FLAGS_threads > 0, kInvalidArgument, "--rounds=", FLAGS_rounds,
                " --threads=", FLAGS_threads, ": expected positive numbers");
  const std::vector<Case> cases = {
      {"alternating_arenas", 20, AlternatingArenas},
      {"batches", 60, Batches},
      {"small_blocks", 200000, [](const Memory& memory) { SmallBlocks(memory, 1); }},
      {"small_blocks_threads", int64_t{200000} * FLAGS_threads, SmallBlocksInThreads}};
  for (const Case& timed : cases) {
    // A fresh one, so that no case profits from blocks that an earlier one has left in the cache.
    CachingAllocator allocator(CpuCachingOptions());
    CaseFigures figures;
    for (int32_t round = 0; round < FLAGS_rounds; ++round) {
      Measure(timed, Of(&allocator), &figures.skiff);
      Measure(timed, Malloc(false), &figures.plain_malloc);
      Measure(timed, Malloc(true), &figures.huge_malloc);
    }
    const auto print = FLAGS_json ? PrintJson : PrintRow;
    print(timed, figures, allocator.statistics());
  }
  return 0;
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "allocator_bench [flags]",
                             .summary = "Times the CPU allocator beside malloc.",
                             .run = skiff::Main});
}
