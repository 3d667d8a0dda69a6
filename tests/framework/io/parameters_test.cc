#include "framework/io/parameters.h"

#include <gtest/gtest.h>

#include "framework/io/safetensors.h"
#include "framework/io/tensor_stream.h"
#include "tests/harness/full_disk.h"
#include "tests/harness/temp_directory.h"

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
  Scope loaded;
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

TEST_F(Parameters, RoundTripSafetensors) {
  const std::string path = directory / "p.safetensors";
  SaveSafetensors(scope, names, path);
  const TensorMap saved = ReadSafetensors(path);
  EXPECT_EQ(saved.size(), 3u);
  EXPECT_EQ(saved.at("a/b").Item<float>(), 6);
  LoadSafetensors(program, names, path, &loaded);
  ExpectLoaded(loaded);
  // Some of them, into the storage that is there.
  const void* storage = scope.Get("w").raw_data();
  scope.FindMutable("w")->data<float>()[0] = 9;
  scope.FindMutable("B")->data<float>()[0] = 9;
  const uint64_t generation = scope.generation();
  LoadSafetensors(program, {"w"}, path, &scope);
  EXPECT_EQ(scope.Get("w").raw_data(), storage);
  EXPECT_EQ(scope.Get("w").ToVector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(scope.Get("B").data<float>()[0], 9);
  EXPECT_EQ(scope.generation(), generation);
}

TEST_F(Parameters, AreNotChangedByASafetensorsFileThatDoesNotFit) {
  const std::string path = directory / "p.safetensors";
  const auto load = [&](const std::vector<std::string>& wanted) {
    return [&, wanted] { LoadSafetensors(program, wanted, path, &loaded); };
  };
  WriteSafetensors(path, {{"B", Tensor::FromValues<float>({1}, {1})},
                          {"w", Tensor::FromValues<float>({3}, {1, 2, 3})}});
  ExpectError(load({"B", "w"}), ErrorCode::kInvalidArgument,
              "variable \"w\": the file holds float32 [3], the program expects float32 [2]");
  ExpectError(load({"B", "a/b"}), ErrorCode::kNotFound, path + " has no tensor \"a/b\"");
  ExpectError(load({"B", "no"}), ErrorCode::kNotFound, "the program has no variable \"no\"");
  ExpectError(load({"B", "B"}), ErrorCode::kAlreadyExists, "variable \"B\" is named twice");
  PutBytes(path, BytesOf(path) + "x");
  EXPECT_EQ(ErrorOf(load({"B"})).code(), ErrorCode::kDataLoss);
  EXPECT_TRUE(loaded.Names().empty());
  ExpectError(
      [&] {
        SaveSafetensors(scope, {"w", "no"}, path);
      },
      ErrorCode::kNotFound, "the scope holds no variable \"no\"");
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

TEST_F(Parameters, RefuseVariablesTooFewAndTooMany) {
  SaveCombined(scope, names, directory / "params");
  const auto load = [&](const std::vector<std::string>& wanted) {
    return [&, wanted] { LoadCombined(program, wanted, directory / "params", &loaded); };
  };
  // The stream of w, of 2 elements, is left over.
  ExpectError(load({"B", "a/b"}), ErrorCode::kDataLoss,
              directory /
                  "params, byte 62: 32 bytes remain after the last of 2 variables, expected "
                  "none");
  program.root()->CreateVar(Persistable("z", {1}));
  ExpectError(load({"B", "a/b", "w", "z"}), ErrorCode::kDataLoss,
              "variable \"z\": " + directory /
                                       "params, byte 94: version of the stream: expected 4 "
                                       "bytes, found 0");
  EXPECT_TRUE(loaded.Names().empty());
}

TEST_F(Parameters, RefuseTruncationAtEveryByteAndLeaveTheScope) {
  SaveCombined(scope, names, directory / "params");
  SaveSeparate(scope, names, directory / "m");
  const std::string combined = BytesOf(directory / "params");
  const std::string separate = BytesOf(directory / "m/w");
  scope.FindMutable("B")->data<float>()[0] = 9;
  const uint64_t generation = scope.generation();
  for (size_t size = 0; size < combined.size(); ++size) {
    SCOPED_TRACE(size);
    PutBytes(directory / "params", combined.substr(0, size));
    const Error error =
        ErrorOf([&] { LoadCombined(program, names, directory / "params", &scope); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    const std::string variable = size < 36 ? "B" : size < 62 ? "a/b" : "w";
    EXPECT_EQ(std::string(error.what())
                  .find(StrCat("variable \"", variable, "\": ", directory / "params, byte ")),
              0u)
        << error.what();
    if (size >= separate.size()) continue;
    PutBytes(directory / "m/w", separate.substr(0, size));
    const Error other = ErrorOf([&] { LoadSeparate(program, names, directory / "m", &scope); });
    EXPECT_EQ(other.code(), ErrorCode::kDataLoss);
    EXPECT_EQ(std::string(other.what()).find("variable \"w\": " + directory / "m/w, byte "), 0u)
        << other.what();
  }
  EXPECT_EQ(scope.Get("B").data<float>()[0], 9);
  EXPECT_EQ(scope.generation(), generation);
}

// Every bit of the heads, the elements left out: refused, or another value in what stays a tensor
// of the program's.
TEST_F(Parameters, SurviveFlippedBitsOfEveryHead) {
  SaveCombined(scope, names, directory / "params");
  const std::string intact = BytesOf(directory / "params");
  int refused = 0;
  for (size_t bit = 0; bit < intact.size() * 8; ++bit) {
    std::string bytes = intact;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    PutBytes(directory / "params", bytes);
    Scope fresh;
    try {
      LoadCombined(program, names, directory / "params", &fresh);
      EXPECT_EQ(fresh.Get("w").shape(), (Shape{2}));
      EXPECT_EQ(fresh.Get("B").dtype(), DType::kFloat32);
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(error.code() == ErrorCode::kDataLoss ||
                  error.code() == ErrorCode::kUnimplemented ||
                  error.code() == ErrorCode::kInvalidArgument)
          << error.what();
      EXPECT_TRUE(fresh.Names().empty());
    }
  }
  // All but the elements, 6 floats.
  EXPECT_EQ(refused, static_cast<int>(intact.size() * 8 - 6 * 32));
}

TEST_F(Parameters, LeaveTheOldFilesOnAFullDisk) {
  const auto save_combined = [&] { SaveCombined(scope, names, directory / "params"); };
  const auto save_separate = [&] { SaveSeparate(scope, names, directory / "m"); };
  save_combined();
  save_separate();
  const std::string combined = BytesOf(directory / "params");
  const std::string separate = BytesOf(directory / "m/w");
  scope.Set("w", Tensor({4096}, DType::kFloat32));
  for (const rlim_t room : {rlim_t{0}, rlim_t{10}, rlim_t{4096}}) {
    SCOPED_TRACE(room);
    for (const std::function<void()>& save :
         {std::function<void()>(save_combined), std::function<void()>(save_separate)}) {
      const Error error = ErrorOf([&] {
        const FileSizeLimit limit(room);
        save();
      });
      EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
      const std::string message = error.what();
      EXPECT_EQ(message.find("write " + directory.path()), 0u) << message;
      EXPECT_NE(message.find(": File too large"), std::string::npos) << message;
    }
  }
  EXPECT_EQ(BytesOf(directory / "params"), combined);
  EXPECT_EQ(BytesOf(directory / "m/w"), separate);
  EXPECT_EQ(NamesIn(directory.path()), (std::vector<std::string>{"m", "params"}));
  EXPECT_EQ(NamesIn(directory / "m"), (std::vector<std::string>{"B", "a", "w"}));
}

TEST_F(Parameters, RefuseAnotherShapeOrDType) {
  scope.Set("w", Tensor::FromValues<float>({3}, {1, 2, 3}));
  SaveCombined(scope, names, directory / "params");
  ExpectError([&] { LoadCombined(program, names, directory / "params", &loaded); },
              ErrorCode::kInvalidArgument,
              "variable \"w\": the file holds float32 [3], the program expects float32 [2]");
  scope.Set("w", Tensor::FromValues<double>({2}, {1, 2}));
  SaveSeparate(scope, names, directory / "m");
  ExpectError([&] { LoadSeparate(program, names, directory / "m", &loaded); },
              ErrorCode::kInvalidArgument,
              "variable \"w\": the file holds float64 [2], the program expects float32 [2]");
  EXPECT_TRUE(loaded.Names().empty());
  program.root()->GetVar("w")->dims = {-1};
  program.root()->GetVar("w")->dtype = DType::kFloat64;
  LoadSeparate(program, names, directory / "m", &loaded);
  EXPECT_EQ(loaded.Get("w").dtype(), DType::kFloat64);
}

TEST_F(Parameters, AreTensorsOnly) {
  SaveCombined(scope, names, directory / "params");
  program.root()->GetVar("w")->kind = VarKind::kSelectedRows;
  ExpectError([&] { LoadCombined(program, names, directory / "params", &loaded); },
              ErrorCode::kInvalidArgument,
              "variable \"w\" is a selected_rows: only lod_tensor is loaded");
  scope.Set("w", Tensor());
  ExpectError([&] { SaveCombined(scope, names, directory / "params"); },
              ErrorCode::kFailedPrecondition,
              "variable \"w\" can't be saved: expected a tensor with storage, plain");
}

TEST_F(Parameters, RefuseNamesThatAreNotThere) {
  const std::string path = directory / "p";
  ExpectError(
      [&] {
        SaveCombined(scope, {"w", "no"}, path);
      },
      ErrorCode::kNotFound, "the scope holds no variable \"no\"");
  ExpectError(
      [&] {
        SaveCombined(scope, {"w", "w"}, path);
      },
      ErrorCode::kAlreadyExists, "variable \"w\" is named twice");
  ExpectError([&] { LoadCombined(program, {"no"}, path, &scope); }, ErrorCode::kNotFound,
              "the program has no variable \"no\"");
  ExpectError([&] { LoadCombined(program, {"w"}, path, &scope); }, ErrorCode::kNotFound,
              "open " + path + ": No such file or directory");
  ExpectError([&] { LoadSeparate(program, {"w"}, directory.path(), &scope); }, ErrorCode::kNotFound,
              "open " + directory / "w: No such file or directory");
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

// a/b would need a folder where a is a file. Nothing is written before that is seen.
TEST_F(Parameters, AreNoFilesAndFoldersAtOnce) {
  for (const char* name : {"a", "B/c/d"}) {
    scope.Set(name, Tensor::FromValues<float>({1}, {1}));
  }
  const std::string path = directory / "m";
  ExpectError(
      [&] {
        SaveSeparate(scope, {"w", "a", "a/b"}, path);
      },
      ErrorCode::kInvalidArgument,
      "\"a/b\" and \"a\" can't be files of their own: the second would be the folder of "
      "the first");
  ExpectError(
      [&] {
        SaveSeparate(scope, {"B/c/d", "B"}, path);
      },
      ErrorCode::kInvalidArgument,
      "\"B/c/d\" and \"B\" can't be files of their own: the second would be the folder of "
      "the first");
  EXPECT_FALSE(std::filesystem::exists(path));
  SaveCombined(scope, {"w", "a", "a/b"}, directory / "combined");
  SaveSeparate(scope, {"w", "a/b"}, path);
}

TEST_F(Parameters, RefuseADirectoryThatCannotBe) {
  PutBytes(directory / "f", "x");
  ExpectError([&] { SaveSeparate(scope, names, directory / "f/m"); }, ErrorCode::kIo,
              "create directory " + directory / "f/m: Not a directory");
  const Error error = ErrorOf([&] { SaveCombined(scope, names, directory / "f/m"); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_EQ(std::string(error.what()).find("create " + directory / "f/m"), 0u) << error.what();
  std::filesystem::create_symlink("/dev/full", directory / "full");
  ExpectError([&] { SaveCombined(scope, names, directory / "full"); }, ErrorCode::kIo,
              "write " + directory / "full: expected a regular file, or none yet");
}

}  // namespace
}  // namespace skiff
