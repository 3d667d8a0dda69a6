#include "models/common/network_sizes.h"

#include "framework/base/error.h"

namespace skiff::models {

void CheckSizes(std::string_view network, std::initializer_list<NetworkSize> sizes) {
  for (const NetworkSize& size : sizes) {
    SKIFF_ENFORCE(size.value >= size.least, kInvalidArgument, network, ": ", size.name, " = ",
                  size.value, ", expected at least ", size.least);
    SKIFF_ENFORCE(size.value <= size.most, kInvalidArgument, network, ": ", size.name, " = ",
                  size.value, ", expected at most ", size.most);
  }
}

}  // namespace skiff::models
