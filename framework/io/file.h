// Files, with every refusal of the system as an Error that names path and reason.
//
// Errors: kNotFound for a file to read that isn't there, kResourceExhausted for a full disk, quota
// or file-size limit, kIo for every other refusal. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/io/byte_stream.h"

namespace skiff {

// Throws the Error of errno's value: "<action> <path>: <reason>".
[[noreturn]] void ThrowSystemError(std::string_view action, const std::string& path,
                                   int error_number);

// A regular file, read from its start. Its size is that of the moment it was opened; a file that
// shrinks while it is read is an Error (kDataLoss).
class InputFile : public ByteSource {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile() override;

 private:
  struct Opened {
    int descriptor;
    int64_t size;
  };
  static Opened Open(const std::string& path);
  InputFile(const std::string& path, Opened opened);
  void ReadNext(void* out, int64_t bytes) override;

  int descriptor_;
};

// A file written from its start, counted and with a running CRC-32.
class OutputFile : public ByteSink {
 public:
  // Creates the file or empties the one that is there.
  explicit OutputFile(const std::string& path);
  // Closes. What Sync didn't confirm may be lost.
  ~OutputFile() override;

  using ByteSink::Write;
  void Write(const void* data, int64_t bytes) override;
  // Brings the contents to the disk (fsync).
  void Sync();

  const std::string& path() const { return path_; }
  int64_t bytes_written() const { return bytes_written_; }
  uint32_t crc32() const { return crc32_; }

 private:
  std::string path_;
  int descriptor_;
  int64_t bytes_written_ = 0;
  uint32_t crc32_ = 0;
};

// A file that appears under its name only when it is complete. Until Commit its bytes lie in
// temp_path() beside it; without Commit they are removed again.
class AtomicFile {
 public:
  // Error (kIo) if `path` bears the name of something else than a file: a directory, a device.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  ByteSink& sink() { return file_; }
  // Instead of writing to the sink, another file may be put there.
  const std::string& temp_path() const { return file_.path(); }
  // Syncs, renames over whatever bears the name, syncs the directory.
  void Commit();

 private:
  std::string path_;
  OutputFile file_;
  bool committed_ = false;
};

// A name beside `path` that no other call gives: `<path>.tmp-<process>-<number>`.
std::string TempPathFor(const std::string& path);
// Removes the regular files of a directory that have such names: what processes that were killed
// have left there. None may be writing there now. A directory that isn't there holds none.
void RemoveTempFiles(const std::string& directory);

inline constexpr int64_t kReadFileLimitBytes = int64_t{1} << 31;

// The whole file. Error (kOutOfRange) if it is longer than `limit_bytes`.
std::string ReadFile(const std::string& path, int64_t limit_bytes = kReadFileLimitBytes);
// Writes through an AtomicFile.
void AtomicWriteFile(const std::string& path, std::string_view bytes);

// Creates a directory and its parents; one that is there is fine.
void CreateDirectories(const std::string& path);
// Whether there is a file, directory or device of that name. Error if the system can't tell.
bool PathExists(const std::string& path);
// Brings the entries of a directory to the disk.
void SyncDirectory(const std::string& path);
// rename(2), for files and directories.
void RenamePath(const std::string& from, const std::string& to);
// The directory that holds `path`; "." for a bare name.
std::string ParentDirectory(const std::string& path);
// `directory`/`name`.
std::string JoinPath(const std::string& directory, std::string_view name);

}  // namespace skiff
