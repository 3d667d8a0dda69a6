// A temporary directory for a test, and files as strings.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace skiff {

class TempDirectory {
 public:
  TempDirectory() : path_(testing::TempDir() + "/skiff-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void PutBytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  EXPECT_TRUE(file.good()) << path;
}

// Returns the names in a directory, sorted.
inline std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the Error that `action` throws. Fails the test if it throws none.
inline Error ErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "expected an Error";
  return Error(ErrorCode::kInvalidArgument, "no error");
}

inline void ExpectError(const std::function<void()>& action, ErrorCode code,
                        const std::string& message) {
  const Error error = ErrorOf(action);
  EXPECT_EQ(ErrorCodeName(error.code()), ErrorCodeName(code)) << error.what();
  EXPECT_EQ(error.what(), message);
}

}  // namespace skiff
