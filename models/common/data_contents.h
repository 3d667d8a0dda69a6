// Settings that name files which a training has read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/io/file_contents.h"
#include "framework/training/file_setting.h"

namespace skiff::models {

// Returns the part of a setting that a continuation must keep. The setting's value names files that
// were read, or folders with files that were read (not in folders inside): with commas between
// them, and perhaps a kind and a colon before each, as in "mnist:FOLDER". Returns nothing if it
// names no such file.
std::optional<training::FileSetting> DataContents(const std::string& value,
                                                  const std::vector<FileContents>& read);

}  // namespace skiff::models
