// What goes into files is the same in every locale of the host program.
#include "tests/harness/foreign_locale.h"

#include <gtest/gtest.h>

#include "framework/io/checkpoint.h"
#include "framework/io/npz.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

INSTANTIATE_TEST_SUITE_P(, InForeignLocale, ForeignLocales(), ForeignLocaleName);

TEST_P(InForeignLocale, NumbersDoLookDifferent) {
  std::ostringstream stream;
  stream << 1234567;
  char text[16];
  std::snprintf(text, sizeof(text), "%.1f", 0.5);
  EXPECT_TRUE(stream.str() == "1.234.567" || std::string(text) == "0,5");
}

// The newest checkpoint would be invisible, and an older one be loaded without a word.
TEST_P(InForeignLocale, CheckpointsAreFound) {
  const TempDirectory directory;
  Program program;
  Var w;
  w.name = "w";
  w.dims = {1000};
  w.persistable = true;
  program.root()->CreateVar(w);
  Scope scope;
  scope.Set("w", Tensor::FromValues<float>({1000}, std::vector<float>(1000)));
  std::filesystem::create_directory(directory / "save-001232-step-7");
  for (const int64_t step : {1500, 2500000}) {
    SaveCheckpoint(directory.path(), program, scope, step, {{"epoch", "1"}});
  }
  EXPECT_EQ(NamesIn(directory.path()),
            (std::vector<std::string>{"save-001233-step-1500", "save-001234-step-2500000"}));
  Scope loaded;
  const LoadedCheckpoint checkpoint = LoadLatestCheckpoint(directory.path(), program, &loaded);
  EXPECT_EQ(checkpoint.step, 2500000);
  EXPECT_TRUE(checkpoint.refused.empty());
}

TEST_P(InForeignLocale, ArraysAreNumpys) {
  const TempDirectory directory;
  const Tensor array({1000, 3}, DType::kFloat32);
  WriteNpyFile(directory / "a.npy", array);
  EXPECT_NE(BytesOf(directory / "a.npy").find("'shape': (1000, 3), }"), std::string::npos);
  EXPECT_EQ(ReadNpyFile(directory / "a.npy").shape(), array.shape());
  WriteNpz(directory / "a.npz", {{"x", array}});
  EXPECT_EQ(ReadNpz(directory / "a.npz").at("x").shape(), array.shape());
}

TEST_P(InForeignLocale, AWeightsHashHasSixteenDigits) {
  Scope scope;
  scope.Set("w", Tensor::FromValues<float>({2}, {1000, 0.5f}));
  const std::string hash = WeightsHash(scope, {"w"});
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos) << hash;
}

}  // namespace
}  // namespace skiff
