#include "framework/training/reader.h"

#include "framework/base/error.h"

namespace skiff::training {

const Tensor& Batch::feed(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [fed, tensor] : feeds) {
    if (fed == name) return tensor;
    names.push_back(fed);
  }
  Throw(ErrorCode::kNotFound, "the batch feeds no \"", name, "\", only ", Join(names, ", "));
}

int64_t Reader::Skip(int64_t count) {
  SKIFF_ENFORCE(count >= 0, kOutOfRange, "skip ", count, " batches: expected no negative number");
  return PassOver(count);
}

int64_t Reader::PassOver(int64_t count) {
  Batch passed;
  int64_t done = 0;
  while (done < count && Next(&passed)) ++done;
  return done;
}

}  // namespace skiff::training
