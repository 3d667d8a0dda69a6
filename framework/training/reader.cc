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

}  // namespace skiff::training
