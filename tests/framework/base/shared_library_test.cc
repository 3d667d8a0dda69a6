#include "framework/base/shared_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SharedLibrary, FindsFunctions) {
  SharedLibrary math("libm.so.6");
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(math.Find("cos", &cosine));
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(math.failure(), "");
}

TEST(SharedLibrary, SaysWhichFunctionIsMissing) {
  SharedLibrary math("libm.so.6");
  void (*function)() = [] {};
  EXPECT_FALSE(math.Find("hope", &function));
  EXPECT_EQ(function, nullptr);
  EXPECT_FALSE(math.Find("wish", &function));
  EXPECT_EQ(math.failure(), "libm.so.6 lacks hope");
}

TEST(SharedLibrary, SaysWhyItIsMissingItself) {
  SharedLibrary none("libhope.so.1");
  void (*function)() = nullptr;
  EXPECT_FALSE(none.Find("hope", &function));
  EXPECT_THAT(none.failure(), HasSubstr("libhope.so.1: cannot open shared object file"));
}

// Returns the path of the library that cos() is from.
std::string MathPath() {
  SharedLibrary math("libm.so.6");
  double (*cosine)(double) = nullptr;
  EXPECT_TRUE(math.Find("cos", &cosine));
  Dl_info info;
  EXPECT_NE(dladdr(reinterpret_cast<void*>(cosine), &info), 0);
  return info.dli_fname;
}

TEST(SharedLibrary, IsFoundInFolders) {
  const TempDirectory empty;
  const TempDirectory full;
  std::filesystem::create_symlink(MathPath(), full / "libhope.so");
  SharedLibrary math("libhope.so", {empty.path(), full.path()});
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(math.Find("cos", &cosine)) << math.failure();
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(math.failure(), "");
}

TEST(SharedLibrary, SaysInWhichFoldersItIsMissing) {
  const TempDirectory empty;
  SharedLibrary none("libhope.so.1", {empty.path(), "/nowhere"});
  EXPECT_THAT(none.failure(), AllOf(StartsWith("libhope.so.1: cannot open shared object file"),
                                    HasSubstr("; nor is it in " + empty.path() + ", /nowhere")));
}

TEST(SharedLibrary, SaysWhyTheFileInAFolderIsNone) {
  const TempDirectory folder;
  PutBytes(folder / "libhope.so.1", "no library");
  SharedLibrary none("libhope.so.1", {folder.path(), "/nowhere"});
  void (*function)() = nullptr;
  EXPECT_FALSE(none.Find("hope", &function));
  EXPECT_THAT(none.failure(), StartsWith(folder / "libhope.so.1: "));
}

TEST(SharedLibrary, IsReplacedByAStandIn) {
  static int here = 0;
  SharedLibrary::Replace("libwish.so.", [](std::string_view name) -> void* {
    return name == "wish" ? &here : nullptr;
  });
  SharedLibrary stand_in("libwish.so.3");
  void (*function)() = nullptr;
  EXPECT_TRUE(stand_in.Find("wish", &function));
  EXPECT_EQ(reinterpret_cast<void*>(function), &here);
  EXPECT_FALSE(stand_in.Find("hope", &function));
  EXPECT_EQ(stand_in.failure(), "libwish.so.3 lacks hope");
}

}  // namespace
}  // namespace skiff
