#include "framework/io/parameters.h"

#include <gtest/gtest.h>

#include "framework/io/tensor_stream.h"
#include "tests/framework/io/temp_directory.h"

namespace skiff {
namespace {

Var Persistable(const std::string& name, std::vector<int64_t> dims) {
  Var var;
  var.name = name;
  var.dims = std::move(dims);
  var.persistable = true;
  return var;
}

// Variables w [2], B [-1], a/b [] (all persistable), x [2] (not), and holders of no tensor.
class Parameters : public testing::Test {
 protected:
  Parameters() {
    Block* root = program.root();
    root->CreateVar(Persistable("w", {2}));
    root->CreateVar(Persistable("B", {-1}));
    Var x = Persistable("x", {2});
    x.persistable = false;
    root->CreateVar(x);
    for (const auto& [name, kind] :
         {std::pair("feed", VarKind::kFeedMinibatch), std::pair("fetch", VarKind::kFetchList),
          std::pair("reader", VarKind::kReader), std::pair("raw", VarKind::kRaw)}) {
      Var holder = Persistable(name, {});
      holder.kind = kind;
      root->CreateVar(holder);
    }
    program.AppendBlock(0)->CreateVar(Persistable("a/b", {}));
    scope.Set("w", Tensor::FromValues<float>({2}, {1, 2}));
    scope.Set("B", Tensor::FromValues<float>({3}, {3, 4, 5}));
    scope.Set("a/b", Tensor::FromValues<float>({}, {6}));
    names = PersistableNames(program);
  }

  void ExpectLoaded(const Scope& loaded) const {
    EXPECT_EQ(loaded.Get("w").ToVector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(loaded.Get("B").ToVector<float>(), (std::vector<float>{3, 4, 5}));
    EXPECT_EQ(loaded.Get("a/b").Item<float>(), 6);
  }

  Program program;
  Scope scope;
  std::vector<std::string> names;
  TempDirectory directory;
};

TEST_F(Parameters, ArePersistablesOfAllBlocksInByteOrder) {
  EXPECT_EQ(names, (std::vector<std::string>{"B", "a/b", "w"}));
}

TEST_F(Parameters, RoundTripCombined) {
  SaveCombined(scope, {"w", "a/b", "B"}, directory / "params");
  StringSink expected;
  for (const char* name : {"B", "a/b", "w"}) WriteTensorStream(scope.Get(name), &expected);
  EXPECT_EQ(BytesOf(directory / "params"), expected.bytes());
  Scope loaded;
  LoadCombined(program, names, directory / "params", &loaded);
  ExpectLoaded(loaded);
  EXPECT_EQ(NamesIn(directory.path()), std::vector<std::string>{"params"});
}

TEST_F(Parameters, RoundTripSeparate) {
  SaveSeparate(scope, names, directory / "m");
  EXPECT_EQ(NamesIn(directory / "m"), (std::vector<std::string>{"B", "a", "w"}));
  Scope loaded;
  LoadSeparate(program, names, directory / "m", &loaded);
  ExpectLoaded(loaded);
}

TEST_F(Parameters, LoadIntoTheStorageThatIsThere) {
  SaveCombined(scope, names, directory / "params");
  const void* storage = scope.Get("w").raw_data();
  scope.FindMutable("w")->data<float>()[0] = 9;
  const uint64_t generation = scope.generation();
  LoadCombined(program, names, directory / "params", &scope);
  ExpectLoaded(scope);
  EXPECT_EQ(scope.Get("w").raw_data(), storage);
  EXPECT_EQ(scope.generation(), generation);
}

TEST_F(Parameters, RestoreLoD) {
  Tensor ragged = Tensor::FromValues<float>({3}, {3, 4, 5});
  ragged.set_lod({{0, 1, 3}});
  scope.Set("B", ragged);
  SaveCombined(scope, names, directory / "params");
  ragged.set_lod({{0, 2, 3}});
  scope.Set("B", ragged);
  LoadCombined(program, names, directory / "params", &scope);
  EXPECT_EQ(scope.Get("B").lod(), (LoD{{0, 1, 3}}));
}

TEST_F(Parameters, RefuseBytesThatRemain) {
  SaveCombined(scope, names, directory / "params");
  Scope loaded;
  const Error error = ErrorOf([&] {
    LoadCombined(program, {"B", "a/b"}, directory / "params", &loaded);
  });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_TRUE(loaded.Names().empty());
}

TEST_F(Parameters, RefuseTruncationAndLeaveTheScope) {
  SaveCombined(scope, names, directory / "params");
  std::filesystem::resize_file(directory / "params",
                               std::filesystem::file_size(directory / "params") - 1);
  scope.FindMutable("B")->data<float>()[0] = 9;
  const Error error = ErrorOf([&] { LoadCombined(program, names, directory / "params", &scope); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_NE(std::string(error.what()).find("variable \"w\""), std::string::npos) << error.what();
  EXPECT_EQ(scope.Get("B").data<float>()[0], 9);
}

TEST_F(Parameters, RefuseAnotherShapeOrDType) {
  scope.Set("w", Tensor::FromValues<float>({3}, {1, 2, 3}));
  SaveCombined(scope, names, directory / "params");
  Scope loaded;
  const Error shape = ErrorOf([&] { LoadCombined(program, names, directory / "params", &loaded); });
  EXPECT_EQ(shape.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(shape.what()).find("float32 [3], the program expects float32 [2]"),
            std::string::npos)
      << shape.what();
  scope.Set("w", Tensor::FromValues<double>({2}, {1, 2}));
  SaveSeparate(scope, names, directory / "m");
  EXPECT_EQ(ErrorOf([&] { LoadSeparate(program, names, directory / "m", &loaded); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(loaded.Names().empty());
}

TEST_F(Parameters, RefuseNamesThatAreNotThere) {
  const auto code_of = [](const std::function<void()>& action) { return ErrorOf(action).code(); };
  EXPECT_EQ(code_of([&] {
              SaveCombined(scope, {"w", "no"}, directory / "p");
            }),
            ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] {
              SaveCombined(scope, {"w", "w"}, directory / "p");
            }),
            ErrorCode::kAlreadyExists);
  EXPECT_EQ(code_of([&] { LoadCombined(program, {"no"}, directory / "p", &scope); }),
            ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { LoadCombined(program, {"w"}, directory / "p", &scope); }),
            ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { LoadSeparate(program, {"w"}, directory.path(), &scope); }),
            ErrorCode::kNotFound);
  EXPECT_TRUE(NamesIn(directory.path()).empty());
}

TEST_F(Parameters, NeverLeaveTheirDirectory) {
  for (const char* name : {"../w", "/w", "a//b", "a/", ".", "a/../../w", ""}) {
    SCOPED_TRACE(name);
    if (*name != '\0') program.root()->CreateVar(Persistable(name, {1}));
    scope.Set(name, Tensor::FromValues<float>({1}, {1}));
    EXPECT_EQ(ErrorOf([&] {
                SaveSeparate(scope, {name, "w"}, directory / "m");
              }).code(),
              ErrorCode::kInvalidArgument);
    EXPECT_FALSE(std::filesystem::exists(directory / "m"));
    if (*name == '\0') continue;
    EXPECT_EQ(ErrorOf([&] { LoadSeparate(program, {name}, directory / "m", &scope); }).code(),
              ErrorCode::kInvalidArgument);
  }
}

TEST_F(Parameters, RefuseADirectoryThatCannotBe) {
  PutBytes(directory / "f", "x");
  EXPECT_EQ(ErrorOf([&] { SaveSeparate(scope, names, directory / "f/m"); }).code(), ErrorCode::kIo);
  EXPECT_EQ(ErrorOf([&] { SaveCombined(scope, names, directory / "f/m"); }).code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace skiff
