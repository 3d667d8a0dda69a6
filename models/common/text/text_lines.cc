#include "models/common/text/text_lines.h"

#include "framework/io/file.h"
#include "models/common/unpacked_file.h"

namespace skiff::text {

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
  models::UnpackedFile file(path);
  return file.ReadRest(kReadFileLimitBytes);
}

}  // namespace skiff::text
