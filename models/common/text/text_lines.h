// The lines of a text file, plain or compressed with gzip.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace skiff::text {

// Returns the lines of a text without their ends (LF or CR LF); they refer to it. An end of line
// at the end of the text starts no further line.
std::vector<std::string_view> LinesOf(std::string_view text);

// Returns a file that may be compressed. Throws Error: kNotFound, kIo and kDataLoss as
// models::UnpackedFile; kOutOfRange beyond kReadFileLimitBytes.
std::string ReadTextFile(const std::string& path);

}  // namespace skiff::text
