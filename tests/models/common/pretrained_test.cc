#include "models/common/pretrained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/safetensors.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class FindSafetensorsTest : public testing::Test {
 protected:
  void Touch(const std::string& name) { AtomicWriteFile(directory_ / name, ""); }
  std::string Found() { return FindSafetensors(directory_.path()).weights; }
  std::string Refusal(const std::string& source) {
    return ErrorText([&] { FindSafetensors(source); });
  }

  TempDirectory directory_;
};

TEST_F(FindSafetensorsTest, UsualNamesWin) {
  Touch("a.safetensors");
  EXPECT_EQ(Found(), directory_ / "a.safetensors") << "the only one";
  Touch("model.safetensors.index.json");
  EXPECT_EQ(Found(), directory_ / "model.safetensors.index.json");
  Touch("model.safetensors");
  EXPECT_EQ(Found(), directory_ / "model.safetensors");
}

TEST_F(FindSafetensorsTest, FilesAreInTheirFolder) {
  Touch("a.safetensors");
  const PretrainedFiles files = FindSafetensors(directory_ / "a.safetensors");
  EXPECT_EQ(files.folder, directory_.path());
  EXPECT_EQ(files.weights, directory_ / "a.safetensors");
}

TEST_F(FindSafetensorsTest, RefusesWhatIsNotThereOrNotClear) {
  EXPECT_THAT(Refusal(directory_.path()), HasSubstr(directory_.path() + ": no weights: expected"));
  EXPECT_THAT(Refusal(directory_ / "a.safetensors"), HasSubstr("there is no such file or folder"));
  Touch("a.bin");
  EXPECT_THAT(Refusal(directory_ / "a.bin"), HasSubstr("expected a folder, a .safetensors file"));
  Touch("a.safetensors");
  Touch("b.safetensors");
  EXPECT_THAT(Refusal(directory_.path()), HasSubstr("a.safetensors, b.safetensors?"));
}

TEST(RuledShapes, HaveNewNamesAndTransposedDims) {
  const TempDirectory directory;
  const std::string path = directory / "w.safetensors";
  WriteSafetensors(path, {{"a", Tensor({2, 3}, DType::kFloat32)},
                          {"b", Tensor({4}, DType::kInt8)},
                          {"c", Tensor({5}, DType::kInt8)}});
  const std::vector<NameRule> rules = {{"a", "x", NameChange::kTranspose},
                                       {.pattern = "c", .change = NameChange::kDrop}};
  EXPECT_THAT(RuledShapes(path, rules),
              ElementsAre(Pair("b", ElementsAre(4)), Pair("x", ElementsAre(3, 2))));
  EXPECT_THAT(RuledPairs(path, rules), ElementsAre(Pair("a", "x"), Pair("b", "b")));
}

}  // namespace
}  // namespace skiff::models
