// The lines of a text: of a file, plain or compressed with gzip, or of a stream.
//
// All readers of a user's text use these functions, so all agree on the ends of lines. A byte order
// mark at the beginning of a file or stream (the bytes EF BB BF, which some editors write) is no
// part of its text. A line ends with LF or CR LF; an end of line at the end of the text starts no
// further line.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace skiff {

// Returns the lines of a text, without line ends, as views of the text.
std::vector<std::string_view> LinesOf(std::string_view text);

// Returns the text of a file that may be compressed, without a byte order mark. Throws Error:
// kNotFound, kIo and kDataLoss as UnpackedFile; kOutOfRange beyond kReadFileLimitBytes.
std::string ReadTextFile(const std::string& path);

// Reads the lines of a stream, such as standard input, one after the other.
class LineReader {
 public:
  // The stream outlives the reader.
  explicit LineReader(std::istream* stream) : stream_(*stream) {}

  // Puts the next line into *line and returns true, or returns false after the last one.
  bool Next(std::string* line);
  // The number of the line that Next gave last, counted from 1; 0 before the first one.
  int64_t number() const { return number_; }

 private:
  std::istream& stream_;
  int64_t number_ = 0;
};

}  // namespace skiff
