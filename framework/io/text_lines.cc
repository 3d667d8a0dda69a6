#include "framework/io/text_lines.h"

#include <istream>

#include "framework/io/file.h"
#include "framework/io/unpacked_file.h"

namespace skiff {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

void DropMark(std::string* text) {
  if (text->starts_with(kByteOrderMark)) text->erase(0, kByteOrderMark.size());
}

}  // namespace

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string ReadTextFile(const std::string& path) {
  UnpackedFile file(path);
  std::string text = file.ReadRest(kReadFileLimitBytes);
  DropMark(&text);
  return text;
}

bool LineReader::Next(std::string* line) {
  if (!std::getline(stream_, *line)) return false;
  if (number_ == 0) {
    DropMark(line);
    // There was nothing else.
    if (line->empty() && stream_.eof()) return false;
  }
  if (line->ends_with('\r')) line->pop_back();
  ++number_;
  return true;
}

}  // namespace skiff
