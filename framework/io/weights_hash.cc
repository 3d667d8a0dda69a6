#include "framework/io/weights_hash.h"

#include "framework/base/fnv_hash.h"
#include "framework/base/number_text.h"
#include "framework/io/byte_stream.h"
#include "framework/io/parameters.h"

namespace skiff {
namespace {

void AddTensor(const std::string& name, const Tensor& tensor, FnvHash* hash) {
  std::string head;
  // Lengths and rank are part of the hash, so that no two lists of tensors give the same bytes.
  AppendNumber<uint64_t>(name.size(), &head);
  head += name;
  AppendNumber(static_cast<int32_t>(tensor.dtype()), &head);
  AppendNumber(static_cast<uint64_t>(tensor.shape().rank()), &head);
  for (int64_t dim : tensor.shape()) AppendNumber(dim, &head);
  hash->Add(head);
  const Tensor values = tensor.place().is_cpu() ? tensor : CopyToCpu(tensor);
  hash->Add(values.raw_data(), values.byte_count());
}

}  // namespace

std::string WeightsHash(const Scope& scope, std::vector<std::string> names) {
  CheckSavable(scope, &names);
  FnvHash hash;
  for (const std::string& name : names) AddTensor(name, scope.Get(name), &hash);
  return FormatHex(hash.state(), 16);
}

}  // namespace skiff
