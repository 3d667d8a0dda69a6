// A folder that gets its name when it is complete.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "framework/io/file.h"

namespace skiff {

// A new folder, which the destructor removes with its contents unless it got another name.
class TempFolder {
 public:
  // Throws Error (kAlreadyExists) if another process is writing there.
  explicit TempFolder(std::string path) : path_(std::move(path)) { CreateNewDirectory(path_); }
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  void RenameTo(const std::string& path) {
    RenamePath(path_, path);
    path_.clear();
  }

 private:
  std::string path_;
};

}  // namespace skiff
