#include "framework/base/place.h"

#include <charconv>
#include <ostream>

#include "framework/base/error.h"

namespace skiff {

Place Place::FromName(const std::string& name) {
  if (name == "cpu") return Cpu();
  if (name == "cuda") return Cuda(0);
  if (name.starts_with("cuda:")) {
    int32_t index = -1;
    const char* end = name.data() + name.size();
    const auto [stop, status] = std::from_chars(name.data() + 5, end, index);
    if (status == std::errc() && stop == end && index >= 0) return Cuda(index);
  }
  Throw(ErrorCode::kInvalidArgument, "place \"", name, "\": expected cpu, cuda or cuda:N");
}

std::string PlaceName(Place place) { return place.is_cpu() ? "cpu" : StrCat("cuda:", place.index); }

std::string TextOf(Place place) { return PlaceName(place); }

std::ostream& operator<<(std::ostream& stream, Place place) { return stream << PlaceName(place); }

}  // namespace skiff
