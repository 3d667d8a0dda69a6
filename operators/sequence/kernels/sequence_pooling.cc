#include "operators/sequence/kernels/sequence_pooling.h"

#include <string>
#include <utility>

#include "framework/base/error.h"

namespace skiff {

Pooling PoolingOf(const OpContext& context) {
  static const std::pair<const char*, Pooling> kNames[] = {
      {"SUM", Pooling::kSum}, {"AVERAGE", Pooling::kAverage}, {"SQRT", Pooling::kSqrt},
      {"MAX", Pooling::kMax}, {"FIRST", Pooling::kFirst},     {"LAST", Pooling::kLast}};
  const auto& name = context.Attr<std::string>("pooltype");
  for (const auto& [known, pooling] : kNames) {
    if (name == known) return pooling;
  }
  Throw(ErrorCode::kInvalidArgument, context.op().type, ": pooltype = \"", name,
        "\", expected AVERAGE, SUM, SQRT, MAX, FIRST or LAST");
}

}  // namespace skiff
