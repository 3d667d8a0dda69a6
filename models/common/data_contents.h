// Settings that name files which a training has read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/io/file_contents.h"
#include "framework/training/file_setting.h"

namespace skiff::models {

// Returns what a continuation must keep of a setting whose value names files, or folders with files
// in them (not in folders inside), that were read: with commas between them, and perhaps a kind and
// a colon before each, as in "mnist:FOLDER". Returns nothing if it names none of them.
std::optional<training::FileSetting> DataContents(const std::string& value,
                                                  const std::vector<FileContents>& read);

}  // namespace skiff::models
