#include "framework/io/safetensors_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsShardsTest : public testing::Test {
 protected:
  SafetensorsShardsTest() {
    Write("1.safetensors", {{"a", Tensor::FromValues<float>({2}, {1, 2})}});
    Write("2.safetensors", {{"b", Tensor::FromValues<int64_t>({1, 1}, {3})}});
  }

  void Write(const std::string& name, const TensorMap& tensors) {
    WriteSafetensors(directory_ / name, tensors);
  }
  // Writes an index whose weight_map has these members, and opens it.
  SafetensorsShards Open(const std::string& members) {
    return OpenText(R"({"metadata": {"total_size": 16}, "weight_map": {)" + members + "}}");
  }
  SafetensorsShards OpenText(const std::string& json) {
    AtomicWriteFile(index_, json);
    return SafetensorsShards(index_);
  }
  std::string Refusal(const std::string& members) {
    return ErrorText([&] { Open(members); });
  }

  TempDirectory directory_;
  std::string index_ = directory_ / "model.safetensors.index.json";
};

TEST_F(SafetensorsShardsTest, HaveTheTensorsOfAllFiles) {
  SafetensorsShards shards = Open(R"("a": "1.safetensors", "b": "2.safetensors")");
  EXPECT_THAT(shards.names(), ElementsAre("a", "b"));
  EXPECT_THAT(shards.dims("b"), ElementsAre(1, 1));
  EXPECT_THAT(shards.Read("a").ToVector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(shards.Read("b").ToVector<int64_t>(), ElementsAre(3));
  EXPECT_FALSE(shards.Contains("c"));
  EXPECT_THAT(ErrorText([&] { shards.Read("c"); }), HasSubstr("there is no tensor \"c\""));
}

TEST_F(SafetensorsShardsTest, MayBeOneFile) {
  SafetensorsShards shards(directory_ / "1.safetensors");
  EXPECT_THAT(shards.names(), ElementsAre("a"));
  EXPECT_THAT(shards.Read("a").ToVector<float>(), ElementsAre(1, 2));
}

TEST_F(SafetensorsShardsTest, RefuseAnIndexThatIsNone) {
  for (const char* json : {"{", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})"}) {
    EXPECT_THAT(ErrorText([&] { OpenText(json); }), HasSubstr(index_)) << json;
  }
}

TEST_F(SafetensorsShardsTest, RefuseFilesThatTheIndexMayNotName) {
  EXPECT_THAT(
      Refusal(R"("a": "../1.safetensors")"),
      HasSubstr(index_ + ": tensor \"a\": found \"../1.safetensors\", expected the name of"));
  EXPECT_THAT(Refusal(R"("a": 1)"), HasSubstr("tensor \"a\": found 1"));
  EXPECT_THAT(Refusal(R"("a": "1.safetensors", "b": "3.safetensors")"),
              HasSubstr(index_ + ": names the file 3.safetensors, which isn't there"));
}

TEST_F(SafetensorsShardsTest, RefuseAnIndexThatContradictsTheFiles) {
  EXPECT_THAT(Refusal(R"("a": "1.safetensors", "b": "1.safetensors")"),
              HasSubstr(index_ + ": tensor \"b\" isn't in 1.safetensors"));
  EXPECT_THAT(Refusal(R"("a": "2.safetensors", "b": "1.safetensors")"),
              HasSubstr("tensor \"a\" isn't in 2.safetensors"));
  Write("1.safetensors", {{"a", Tensor({1}, DType::kInt8)}, {"more", Tensor({1}, DType::kInt8)}});
  EXPECT_THAT(Refusal(R"("a": "1.safetensors", "b": "2.safetensors")"),
              HasSubstr(index_ + ": doesn't list tensor \"more\""));
}

TEST_F(SafetensorsShardsTest, RefuseATensorInTwoFiles) {
  Write("2.safetensors", {{"a", Tensor({1}, DType::kInt8)}, {"b", Tensor({1}, DType::kInt8)}});
  EXPECT_THAT(Refusal(R"("a": "1.safetensors", "b": "2.safetensors")"),
              HasSubstr("2.safetensors: tensor \"a\" is in another file of the model, too"));
}

TEST_F(SafetensorsShardsTest, NameTheFileThatIsTruncated) {
  const std::string path = directory_ / "2.safetensors";
  std::string bytes = ReadFile(path);
  bytes.pop_back();
  AtomicWriteFile(path, bytes);
  EXPECT_THAT(Refusal(R"("a": "1.safetensors", "b": "2.safetensors")"), HasSubstr(path));
}

}  // namespace
}  // namespace skiff
