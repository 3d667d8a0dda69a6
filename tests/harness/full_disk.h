// Two ways to simulate a full disk.
#pragma once

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace skiff {

// While an object exists, no file of this process can grow beyond `bytes`. Works everywhere, but
// the system reports "File too large".
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

// A file system of `bytes` bytes, mounted at an empty directory. is_mounted() is false without the
// permission to mount.
class TinyDisk {
 public:
  TinyDisk(std::string path, int64_t bytes) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    const std::string options = "size=" + std::to_string(bytes);
    is_mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~TinyDisk() {
    if (is_mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;

  bool is_mounted() const { return is_mounted_; }
  const std::string& path() const { return path_; }
  int64_t free_bytes() const {
    return static_cast<int64_t>(std::filesystem::space(path_).available);
  }
  // Fills the file system until about `bytes` are free.
  void FillUpTo(int64_t bytes) {
    std::ofstream file(path_ + "/filling", std::ios::binary);
    const std::string page(4096, 'x');
    while (free_bytes() >= bytes + 4096 && file << page << std::flush) {
    }
  }
  void Empty() { std::filesystem::remove(path_ + "/filling"); }

 private:
  std::string path_;
  bool is_mounted_ = false;
};

}  // namespace skiff
