// Files. Every failure of the system becomes an Error that names path and reason (system_error.h).
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "framework/io/byte_stream.h"

namespace skiff {

// Reads a regular file from its start. size() is the size when it was opened; reading throws Error
// (kDataLoss) if the file shrinks.
class InputFile : public ByteSource {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile() override;

  // Makes `offset` the next byte to read. Throws Error (kDataLoss) if it is outside the file.
  void Seek(int64_t offset);
  // Throws Error (kDataLoss) if the file has become shorter since it was opened.
  void CheckNotShrunk() const;
  int descriptor() const { return descriptor_; }

 private:
  struct Opened {
    int descriptor;
    int64_t size;
  };
  static Opened Open(const std::string& path);
  [[noreturn]] void ThrowShrunk(int64_t end) const;
  InputFile(const std::string& path, Opened opened);
  void ReadNext(void* out, int64_t bytes) override;

  int descriptor_;
};

// Writes a file from its start, counting bytes and updating a CRC-32.
class OutputFile : public ByteSink {
 public:
  // Creates the file. Throws Error (kAlreadyExists) if something has that name, even a symbolic
  // link that leads nowhere: whoever can plant a link must not choose which file is written.
  explicit OutputFile(const std::string& path);
  // Closes the file. Bytes written since the last Sync may be lost.
  ~OutputFile() override;

  using ByteSink::Write;
  void Write(const void* data, int64_t bytes) override;
  // Brings the contents to disk (fsync).
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

// Writes a file that appears under its name only when complete. Until Commit, its bytes are in
// temp_path() in the same directory; the destructor removes that file if Commit wasn't called.
//
// The temporary file is new and has a random name, `<path>.tmp-<16 hexadecimal digits>`. Processes
// that write the same file, even in two containers, write one temporary file each; the last Commit
// wins as a whole.
class AtomicFile {
 public:
  // Throws Error (kIo) if `path` names something other than a file, such as a directory or a
  // device.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  ByteSink& sink() { return *file_; }
  // Callers may put another file there instead of writing to the sink.
  const std::string& temp_path() const { return file_->path(); }
  // Syncs the temporary file, renames it to the final name, replacing an existing file, and syncs
  // the directory.
  void Commit();

 private:
  static std::unique_ptr<OutputFile> CreateTempFile(const std::string& path);

  std::string path_;
  std::unique_ptr<OutputFile> file_;
  bool committed_ = false;
};

// Removes regular files with the names of temporary files from a directory: the remains of killed
// processes. No process may be writing there. Does nothing if the directory doesn't exist.
void RemoveTempFiles(const std::string& directory);

inline constexpr int64_t kReadFileLimitBytes = int64_t{1} << 31;

// Returns the contents of a file. Throws Error (kOutOfRange) if it is longer than `limit_bytes`.
std::string ReadFile(const std::string& path, int64_t limit_bytes = kReadFileLimitBytes);
// Writes a file through AtomicFile.
void AtomicWriteFile(const std::string& path, std::string_view bytes);

// Creates a directory and its parents, unless it exists, and brings the new entries to disk.
void CreateDirectories(const std::string& path);
// Creates a directory whose parent exists. Throws Error (kAlreadyExists) if something has that
// name. Syncing the parent is left to the caller.
void CreateNewDirectory(const std::string& path);
// Returns whether a file, directory or device of that name exists. Throws Error if the system can't
// tell.
bool PathExists(const std::string& path);
// Brings the entries of a directory to disk.
void SyncDirectory(const std::string& path);
// Renames a file or directory (rename(2)).
void RenamePath(const std::string& from, const std::string& to);
// Returns the directory that holds `path`, "." for a bare name.
std::string ParentDirectory(const std::string& path);
// Returns `directory`/`name`.
std::string JoinPath(const std::string& directory, std::string_view name);

}  // namespace skiff
