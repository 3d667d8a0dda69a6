// A table of buffers as CSV, with the columns id, lower, upper, size in any order, one buffer per
// line. A buffer lives from `lower` to just before `upper`. Its size is in bytes; its id is any
// text without a comma.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memory/arena_planner.h"

namespace skiff {

struct BufferTable {
  std::string header;              // as in the file
  std::vector<std::string> lines;  // one per buffer, as in the file
  // In the same order. Instants are ranks, so the file's instants may be any 64-bit numbers.
  std::vector<ArenaBuffer> buffers;
};

// Parses a table; `name` is its name in messages. Throws Error (kInvalidArgument), with the line,
// for a header in which a column is missing, unknown or repeated, for a line with another number of
// columns, for text that isn't a number, for a negative size, and unless lower < upper.
BufferTable ParseBufferTable(std::string_view text, const std::string& name, int64_t alignment);

// Returns the table with a last column `offset`.
std::string TableWithOffsets(const BufferTable& table, const std::vector<int64_t>& offsets);

}  // namespace skiff
