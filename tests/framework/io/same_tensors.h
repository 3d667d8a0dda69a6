// Checks that a file gives back the tensors that were written.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "framework/io/tensor_stream.h"

namespace skiff {

// Expects the same names with the same dtypes, shapes, LoDs and bytes.
inline void ExpectSame(const TensorMap& found, const TensorMap& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(found.contains(name));
    const Tensor& other = found.at(name);
    EXPECT_EQ(other.dtype(), tensor.dtype());
    EXPECT_EQ(other.shape(), tensor.shape());
    EXPECT_EQ(other.lod(), tensor.lod());
    if (tensor.byte_count() == 0) continue;
    EXPECT_EQ(
        std::memcmp(other.raw_data(), tensor.raw_data(), static_cast<size_t>(tensor.byte_count())),
        0);
  }
}

}  // namespace skiff
