#include "framework/io/weights_hash.h"

#include "framework/base/number_text.h"
#include "framework/io/byte_stream.h"
#include "framework/io/parameters.h"

namespace skiff {
namespace {

// FNV-1a isn't cryptographic, and needn't be: it tells runs apart, and anyone can compute it in a
// few lines from the saved files.
class Fnv1a {
 public:
  void Add(const void* data, int64_t bytes) {
    const auto* next = static_cast<const uint8_t*>(data);
    for (int64_t i = 0; i < bytes; ++i) state_ = (state_ ^ next[i]) * 0x100000001b3;
  }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

void AddTensor(const std::string& name, const Tensor& tensor, Fnv1a* hash) {
  std::string head;
  // Lengths and rank are part of the hash, so that no two lists of tensors give the same bytes.
  AppendNumber<uint64_t>(name.size(), &head);
  head += name;
  AppendNumber(static_cast<int32_t>(tensor.dtype()), &head);
  AppendNumber(static_cast<uint64_t>(tensor.shape().rank()), &head);
  for (int64_t dim : tensor.shape()) AppendNumber(dim, &head);
  hash->Add(head.data(), static_cast<int64_t>(head.size()));
  const Tensor values = tensor.place().is_cpu() ? tensor : CopyToCpu(tensor);
  hash->Add(values.raw_data(), values.byte_count());
}

}  // namespace

std::string WeightsHash(const Scope& scope, std::vector<std::string> names) {
  CheckSavable(scope, &names);
  Fnv1a hash;
  for (const std::string& name : names) AddTensor(name, scope.Get(name), &hash);
  return FormatHex(hash.state(), 16);
}

}  // namespace skiff
