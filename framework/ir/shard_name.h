// The names of shards: variables with only this rank's part of optimizer states, which several
// ranks keep together.
#pragma once

namespace skiff {

// In the name of each shard, behind the name of the first state that it has a part of.
inline constexpr const char* kShardMark = "@SHARD@";

}  // namespace skiff
