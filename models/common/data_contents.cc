#include "models/common/data_contents.h"

#include <filesystem>

#include "framework/base/error.h"
#include "framework/command_line/argument_text.h"
#include "framework/io/byte_stream.h"

namespace skiff::models {
namespace {

// What a part of a value names.
struct NamedFiles {
  std::string kind;  // before it, such as "mnist:"
  bool is_folder = false;
  std::vector<const FileContents*> files;  // of those that were read
};

NamedFiles FilesNamedBy(const std::string& part, const std::vector<FileContents>& read) {
  const auto normal = [](const std::filesystem::path& path) { return path.lexically_normal(); };
  // Without a colon, both are the same.
  for (const size_t begin : {size_t{0}, part.find(':') + 1}) {
    const std::string name = part.substr(begin);
    for (const bool is_folder : {false, true}) {
      NamedFiles named{.kind = part.substr(0, begin), .is_folder = is_folder, .files = {}};
      for (const FileContents& file : read) {
        const std::filesystem::path path(file.path);
        std::filesystem::path expected(name);
        if (is_folder) expected /= path.filename();
        if (!name.empty() && normal(path) == normal(expected)) named.files.push_back(&file);
      }
      if (!named.files.empty()) return named;
    }
  }
  return {};
}

std::string ContentsText(const FileContents& file) {
  return StrCat(file.bytes, " bytes with CRC-32 ", Crc32Text(file.crc32));
}

}  // namespace

std::optional<training::FileSetting> DataContents(const std::string& value,
                                                  const std::vector<FileContents>& read) {
  std::vector<std::string> parts = {value};
  // Else a list of names.
  if (FilesNamedBy(value, read).files.empty()) parts = SplitNames(value);
  training::FileSetting setting{.value = value, .form = {}, .contents = {}};
  for (size_t i = 0; i < parts.size(); ++i) {
    const NamedFiles named = FilesNamedBy(parts[i], read);
    if (named.files.empty()) continue;
    parts[i] = StrCat(named.kind, named.is_folder ? "FOLDER" : "FILE");
    for (const FileContents* file : named.files) {
      std::string which;
      if (named.is_folder) which = " of " + std::filesystem::path(file->path).filename().string();
      if (parts.size() > 1) which += StrCat(named.is_folder ? " of folder " : " of file ", i + 1);
      setting.contents["contents" + which] = ContentsText(*file);
    }
  }
  if (setting.contents.empty()) return {};
  setting.form = Join(parts, ",");
  return setting;
}

}  // namespace skiff::models
