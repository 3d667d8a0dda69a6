// A table of buffers as CSV: the columns id, lower, upper, size in any order, one buffer a line. A
// buffer lives from `lower` to just before `upper`; its size is in bytes, its id any text without
// comma.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memory/arena_planner.h"

namespace skiff {

struct BufferTable {
  std::string header;              // as in the file
  std::vector<std::string> lines;  // one a buffer, as in the file
  // In the same order. The instants are numbered by rank, so that those of the file may be any
  // 64-bit numbers.
  std::vector<ArenaBuffer> buffers;
};

// Error (kInvalidArgument), with the line, for a header without one of the columns, with another
// one or with one twice; for a line with another number of columns, for what is no number, for a
// negative size, and where lower isn't below upper. `name` is what errors call the text.
BufferTable ParseBufferTable(std::string_view text, const std::string& name, int64_t alignment);

// The table with a column `offset` behind the others.
std::string TableWithOffsets(const BufferTable& table, const std::vector<int64_t>& offsets);

}  // namespace skiff
