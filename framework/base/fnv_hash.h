// FNV-1a, a hash of 64 bits: the same on every machine. It isn't cryptographic; anyone can compute
// it in a few lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace skiff {

class FnvHash {
 public:
  void Add(const void* data, int64_t bytes) {
    const auto* next = static_cast<const uint8_t*>(data);
    for (int64_t i = 0; i < bytes; ++i) state_ = (state_ ^ next[i]) * 0x100000001b3;
  }
  void Add(std::string_view text) { Add(text.data(), static_cast<int64_t>(text.size())); }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace skiff
