#include "framework/training/array_reader.h"

#include <cstring>

#include "framework/base/error.h"

namespace skiff::training {

ArraySource::ArraySource(FeedList arrays) : arrays_(std::move(arrays)) {
  SKIFF_ENFORCE(!arrays_.empty(), kInvalidArgument,
                "ArrayReader of no arrays, expected at least one");
  const auto& [first, first_array] = arrays_[0];
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const auto& [name, array] = arrays_[i];
    const std::string what = StrCat("arrays[\"", name, "\"]");
    for (size_t k = 0; k < i; ++k) {
      SKIFF_ENFORCE(arrays_[k].first != name, kInvalidArgument, what, " is there twice");
    }
    SKIFF_ENFORCE(array.place().is_cpu(), kInvalidArgument, what, " is on ", array.place(),
                  ", expected the CPU");
    SKIFF_ENFORCE(array.lod().empty() && !array.is_selected_rows(), kInvalidArgument, what,
                  array.lod().empty() ? " is selected rows" : " has LoD", ", expected dense rows");
    SKIFF_ENFORCE(array.shape().rank() > 0, kInvalidArgument, what, " has rank 0, expected rows");
    SKIFF_ENFORCE(array.shape()[0] == first_array.shape()[0], kInvalidArgument, what, " has ",
                  array.shape()[0], " rows, expected ", first_array.shape()[0], " as in \"", first,
                  "\"");
  }
}

std::vector<FeedShape> ArraySource::fields() const {
  std::vector<FeedShape> fields;
  for (const auto& [name, array] : arrays_) {
    fields.push_back({name, Shape(array.shape().dims().subspan(1)), array.dtype()});
  }
  return fields;
}

void ArraySource::Read(int64_t sample, int64_t /*epoch*/, int64_t row,
                       std::span<Tensor> fields) const {
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const int64_t bytes = arrays_[i].second.byte_count() / size();
    std::memcpy(static_cast<char*>(fields[i].raw_data()) + row * bytes,
                static_cast<const char*>(arrays_[i].second.raw_data()) + sample * bytes,
                static_cast<size_t>(bytes));
  }
}

}  // namespace skiff::training
