#include "framework/comm/load_mpi_plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/shared_library.h"

namespace skiff {
namespace {

constexpr const char* kVariable = "SKIFF_MPI_PLUGIN";
constexpr const char* kFileName = "libskiff_mpi.so";
// Of a build's files, where the plug-in is among the files that programs need to run.
constexpr const char* kFolderOfBuild = "skiff/framework/comm";

// Returns the path of the shared library, or the program, that this code is in.
std::filesystem::path OwnPath() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&LoadMpiPlugin), &info) == 0) return {};
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored);
}

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  const std::filesystem::path own = OwnPath();
  if (!own.empty()) {
    const std::filesystem::path folder = own.parent_path();
    folders.push_back(folder);
    folders.push_back(folder / "skiff");                        // beside lib/libskiff.so
    folders.push_back(folder.parent_path() / "lib" / "skiff");  // of a program in bin
    folders.push_back(own.string() + ".runfiles/" + kFolderOfBuild);
  }
  // Bazel's tests and `bazel run` set it.
  if (const char* const files = std::getenv("RUNFILES_DIR")) {
    folders.push_back(StrCat(files, "/", kFolderOfBuild));
  }
  return folders;
}

SharedLibrary Open() {
  const char* const path = std::getenv(kVariable);
  return path == nullptr ? SharedLibrary(kFileName, Folders()) : SharedLibrary(path);
}

}  // namespace

const MpiPlugin& LoadMpiPlugin() {
  SharedLibrary library = Open();
  decltype(&SkiffMpiPlugin) functions = nullptr;
  SKIFF_ENFORCE(library.Find("SkiffMpiPlugin", &functions), kNotFound,
                "Skiff's plug-in for MPI can't be loaded: ", library.failure(),
                ". Install MPI (apt-get install libopenmpi-dev openmpi-bin) and build Skiff with "
                "it, or let ",
                kVariable, " name the file");
  const MpiPlugin& plugin = *functions();
  SKIFF_ENFORCE(plugin.version == kMpiPluginVersion, kFailedPrecondition,
                "Skiff's plug-in for MPI has version ", plugin.version,
                " of its interface, expected ", kMpiPluginVersion,
                ": it is of another version of Skiff");
  return plugin;
}

}  // namespace skiff
