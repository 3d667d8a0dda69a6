// A bound on memory for work that must take little, whatever the program.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace skiff::fuzz {

// While a SmallMemory exists, the process gets 16 MiB of buffers and 512 MiB in all, in addition to
// its memory: asking for more throws as when memory runs out, an Error (kResourceExhausted) or
// std::bad_alloc. With AddressSanitizer, which takes all addresses, only buffers have a bound. One
// at a time.
class SmallMemory {
 public:
  SmallMemory();
  ~SmallMemory();
  SmallMemory(const SmallMemory&) = delete;
  SmallMemory& operator=(const SmallMemory&) = delete;

 private:
  int64_t outer_buffers_ = 0;
  rlimit outer_addresses_ = {};
};

}  // namespace skiff::fuzz
