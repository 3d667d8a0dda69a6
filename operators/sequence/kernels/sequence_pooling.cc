#include "operators/sequence/kernels/sequence_pooling.h"

#include <string>
#include <utility>

#include "framework/base/error.h"

namespace skiff {

SequencePooling PoolingOf(const OpContext& context) {
  static const std::pair<const char*, SequencePooling> kNames[] = {
      {"SUM", SequencePooling::kSum},     {"AVERAGE", SequencePooling::kAverage},
      {"SQRT", SequencePooling::kSqrt},   {"MAX", SequencePooling::kMax},
      {"FIRST", SequencePooling::kFirst}, {"LAST", SequencePooling::kLast}};
  const auto& name = context.Attr<std::string>("pooltype");
  for (const auto& [known, pooling] : kNames) {
    if (name == known) return pooling;
  }
  Throw(ErrorCode::kInvalidArgument, context.op().type, ": pooltype = \"", name,
        "\", expected AVERAGE, SUM, SQRT, MAX, FIRST or LAST");
}

}  // namespace skiff
