// The names of links in the text format of plans. Internal to framework/plan.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "framework/plan/loop.h"

namespace skiff {

inline constexpr std::array<std::pair<std::string_view, LoopFeed::Kind>, 3> kFeedKinds = {{
    {"invariant", LoopFeed::Kind::kInvariant},
    {"part", LoopFeed::Kind::kPart},
    {"carried", LoopFeed::Kind::kCarried},
}};

inline constexpr std::array<std::pair<std::string_view, LoopFetch::Kind>, 4> kFetchKinds = {{
    {"carried", LoopFetch::Kind::kCarried},
    {"part", LoopFetch::Kind::kPart},
    {"last", LoopFetch::Kind::kLast},
    {"sum", LoopFetch::Kind::kSum},
}};

inline std::string_view NameOf(LoopFeed::Kind kind) {
  return kFeedKinds[static_cast<size_t>(kind)].first;
}
inline std::string_view NameOf(LoopFetch::Kind kind) {
  return kFetchKinds[static_cast<size_t>(kind)].first;
}

}  // namespace skiff
