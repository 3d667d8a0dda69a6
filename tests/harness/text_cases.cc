#include "tests/harness/text_cases.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff::harness {
namespace {

constexpr std::string_view kTitle = "## ";
constexpr std::string_view kBefore = "\nbefore:";
constexpr std::string_view kAfter = "\nafter:";

struct TextFile {
  std::string introduction;
  std::vector<TextCase> cases;
};

TextCase ParseCase(const std::string& text) {
  const size_t before = text.find(kBefore);
  const size_t after = text.find(kAfter);
  SKIFF_ENFORCE(before != std::string::npos && after != std::string::npos && before < after,
                kInvalidArgument, "expected before: and after: in ", text);
  TextCase parsed;
  std::istringstream head(text.substr(0, before));
  std::getline(head, parsed.title);
  for (std::string line; std::getline(head, line);) parsed.options.push_back(line);
  const size_t start = before + kBefore.size();
  parsed.before = text.substr(start, after + 1 - start);
  parsed.after = text.substr(after + kAfter.size());
  return parsed;
}

TextFile ReadTextFile(const std::string& path) {
  const std::string text = ReadFile(path);
  size_t start = text.starts_with(kTitle) ? 0 : text.find("\n## ");
  TextFile file{.introduction = text.substr(0, start)};
  while (start != std::string::npos) {
    start = text.find(kTitle, start) + kTitle.size();
    const size_t end = text.find("\n## ", start);
    std::string one = text.substr(start, end - start);
    while (one.ends_with('\n')) one.pop_back();
    file.cases.push_back(ParseCase(one + "\n"));
    start = end;
  }
  return file;
}

std::string PrintTextFile(const TextFile& file) {
  std::string text = file.introduction;
  for (const TextCase& one : file.cases) {
    if (!text.empty()) text += '\n';
    text += StrCat(kTitle, one.title, "\n");
    for (const std::string& option : one.options) text += option + "\n";
    text += StrCat(kBefore.substr(1), one.before, kAfter.substr(1), one.after);
  }
  return text;
}

void WriteToSourceTree(const std::string& path, const TextFile& file) {
  const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  ASSERT_NE(root, nullptr) << "SKIFF_WRITE_CASES needs bazel run";
  std::ofstream out(StrCat(root, "/", path));
  out << PrintTextFile(file);
  EXPECT_TRUE(out.flush()) << path;
}

}  // namespace

std::vector<TextCase> ReadTextCases(const std::string& path) { return ReadTextFile(path).cases; }

TextCase ReadTextCase(const std::string& path, const std::string& title) {
  TextFile file = ReadTextFile(path);
  for (TextCase& one : file.cases) {
    if (one.title == title) return std::move(one);
  }
  Throw(ErrorCode::kNotFound, path, " has no case \"", title, "\"");
}

void CheckTextCases(const std::string& path,
                    const std::function<std::string(const TextCase&)>& make) {
  TextFile file = ReadTextFile(path);
  EXPECT_FALSE(file.cases.empty()) << path;
  const bool writes = std::getenv("SKIFF_WRITE_CASES") != nullptr;
  for (TextCase& one : file.cases) {
    SCOPED_TRACE(StrCat(path, ": ", one.title));
    const std::string found = make(one);
    if (writes) {
      one.after = found;
    } else {
      EXPECT_EQ(one.after, found) << "SKIFF_WRITE_CASES=1 bazel run … writes what is found";
    }
  }
  if (writes) WriteToSourceTree(path, file);
}

}  // namespace skiff::harness
