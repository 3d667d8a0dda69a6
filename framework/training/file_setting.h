// Settings of a training that name files.
#pragma once

#include <map>
#include <string>

namespace skiff::training {

// A training may go on with a copy of its files, but not with other contents under the same names.
struct FileSetting {
  std::string value = {};  // as it was given
  std::string form = {};   // the value without the names of the files
  // A text for each file, which is equal for equal contents. The key names the file: "contents of
  // a.txt".
  std::map<std::string, std::string> contents = {};
};

}  // namespace skiff::training
