#include "framework/tensor/bools.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {
namespace {

const uint8_t* BytesOf(const Tensor& tensor) {
  return static_cast<const uint8_t*>(tensor.raw_data());
}

}  // namespace

std::optional<int64_t> FindBadBool(const Tensor& tensor) {
  if (tensor.dtype() != DType::kBool || !tensor.has_data() || !tensor.place().is_cpu()) return {};
  const uint8_t* begin = BytesOf(tensor);
  const uint8_t* end = begin + tensor.byte_count();
  // A loop that stops early isn't vectorized, and nearly all tensors are good.
  uint8_t bits = 0;
  for (const uint8_t* byte = begin; byte != end; ++byte) bits |= *byte;
  if (bits <= 1) return {};
  return std::find_if(begin, end, [](uint8_t byte) { return byte > 1; }) - begin;
}

void CheckBools(const Tensor& tensor, std::string_view what) {
  const std::optional<int64_t> bad = FindBadBool(tensor);
  if (!bad) return;
  Throw(ErrorCode::kInvalidArgument, what, ": element ", *bad, " is a bool of value ",
        static_cast<int>(BytesOf(tensor)[*bad]), ", expected 0 or 1");
}

}  // namespace skiff
