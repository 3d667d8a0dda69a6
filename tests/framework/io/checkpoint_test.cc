#include "framework/io/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "tests/framework/io/temp_directory.h"

namespace skiff {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFiles = {"manifest.json", "state.json", "tensors"};

class Checkpoints : public testing::Test {
 protected:
  Checkpoints() {
    AddPersistable("w", DType::kFloat32, {1000});
    AddPersistable("step", DType::kInt64, {1});
    scope.Set("w", Tensor::FromValues<float>({1000}, std::vector<float>(1000)));
    scope.Set("step", Tensor::FromValues<int64_t>({1}, {0}));
  }

  void AddPersistable(const std::string& name, DType dtype, std::vector<int64_t> dims) {
    Var var;
    var.name = name;
    var.dtype = dtype;
    var.dims = std::move(dims);
    var.persistable = true;
    program.root()->CreateVar(var);
  }

  // A training at `step`: its variables and its state follow from the number.
  SavedCheckpoint Save(int64_t step, const SaveCheckpointOptions& options = {}) {
    scope.FindMutable("w")->data<float>()[7] = static_cast<float>(step);
    scope.FindMutable("step")->data<int64_t>()[0] = step;
    return SaveCheckpoint(directory.path(), program, scope, step, {{"epoch", std::to_string(step)}},
                          options);
  }

  LoadedCheckpoint Load() { return LoadLatestCheckpoint(directory.path(), program, &loaded); }

  void ExpectLoads(int64_t step, size_t refused) {
    const LoadedCheckpoint checkpoint = Load();
    EXPECT_EQ(checkpoint.step, step);
    EXPECT_EQ(checkpoint.state.at("epoch"), std::to_string(step));
    EXPECT_EQ(checkpoint.refused.size(), refused);
    EXPECT_EQ(loaded.Get("w").data<float>()[7], static_cast<float>(step));
    EXPECT_EQ(loaded.Get("step").Item<int64_t>(), step);
  }

  std::vector<std::string> Folders() const { return NamesIn(directory.path()); }

  Program program;
  Scope scope;
  Scope loaded;
  TempDirectory directory;
};

TEST_F(Checkpoints, RoundTrip) {
  const SavedCheckpoint saved = Save(12);
  EXPECT_EQ(saved.path, directory / "save-000001-step-12");
  EXPECT_EQ(NamesIn(saved.path), kFiles);
  ExpectLoads(12, 0);
}

TEST_F(Checkpoints, KeepAnyBytesOfTheTrainersState) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const TrainerState state = {
      {"bytes", bytes}, {"", "empty name"}, {"empty", ""}, {"json", "{\"a\": [1, \"\xc3\xa9\"]}"}};
  SaveCheckpoint(directory.path(), program, scope, 0, state);
  EXPECT_EQ(Load().state, state);
}

TEST_F(Checkpoints, AreFoundInADirectoryThatIsMadeForThem) {
  SaveCheckpoint(directory / "a/b", program, scope, 1, {});
  EXPECT_EQ(LoadLatestCheckpoint(directory / "a/b", program, &loaded).step, 1);
}

TEST_F(Checkpoints, AreNotFoundWhereThereAreNone) {
  EXPECT_EQ(ErrorOf([&] { Load(); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(ErrorOf([&] { LoadLatestCheckpoint(directory / "no", program, &loaded); }).code(),
            ErrorCode::kNotFound);
  // Names that look like ours, and what an interrupted save leaves.
  for (const char* name : {".tmp-save-000001-step-1", "save-", "save-1", "save-x-step-1",
                           "save-1-step-", "save-1-step-x", "save--1-step-1",
                           "save-9223372036854775807-step-1", "save-99999999999999999999-step-1"}) {
    fs::create_directory(directory / name);
  }
  EXPECT_EQ(ErrorOf([&] { Load(); }).code(), ErrorCode::kNotFound);
}

TEST_F(Checkpoints, KeepTheLast) {
  EXPECT_TRUE(Save(1).removed.empty());
  EXPECT_TRUE(Save(2).removed.empty());
  EXPECT_EQ(Save(3).removed, std::vector<std::string>{directory / "save-000001-step-1"});
  EXPECT_EQ(Folders(), (std::vector<std::string>{"save-000002-step-2", "save-000003-step-3"}));
  Save(4, {.keep_last = 1});
  EXPECT_EQ(Folders(), std::vector<std::string>{"save-000004-step-4"});
  Save(5, {.keep_last = 3});
  Save(6, {.keep_last = 3});
  EXPECT_EQ(Folders().size(), 3u);
}

TEST_F(Checkpoints, CountSavesSoThatGoingBackIsSafe) {
  Save(50);
  Save(10);
  Save(20);
  Save(20);
  EXPECT_EQ(Folders(), (std::vector<std::string>{"save-000003-step-20", "save-000004-step-20"}));
  ExpectLoads(20, 0);
}

TEST_F(Checkpoints, NeverDeleteTheLastIntactOne) {
  Save(1);
  const std::string second = Save(2).path;
  std::string bytes = BytesOf(second + "/tensors");
  bytes[100] ^= 1;
  PutBytes(second + "/tensors", bytes);
  Save(3);
  EXPECT_EQ(Folders(), (std::vector<std::string>{"save-000001-step-1", "save-000002-step-2",
                                                 "save-000003-step-3"}));
  Save(4);
  EXPECT_EQ(Folders(), (std::vector<std::string>{"save-000003-step-3", "save-000004-step-4"}));
}

// Each file cut short, emptied, lengthened, changed or gone: the checkpoint before it is taken.
TEST_F(Checkpoints, FallBackFromATornOne) {
  Save(1);
  const std::string newest = Save(2).path;
  const std::vector<std::function<void(const std::string&)>> damages = {
      [](const std::string& path) { fs::resize_file(path, fs::file_size(path) - 1); },
      [](const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); },
      [](const std::string& path) { fs::resize_file(path, 0); },
      [](const std::string& path) { PutBytes(path, BytesOf(path) + "x"); },
      [](const std::string& path) {
        std::string bytes = BytesOf(path);
        bytes[bytes.size() / 2] ^= 1;
        PutBytes(path, bytes);
      },
      [](const std::string& path) { fs::remove(path); },
      [](const std::string& path) {
        fs::remove(path);
        fs::create_directory(path);
      },
  };
  for (const std::string& name : kFiles) {
    for (size_t i = 0; i < damages.size(); ++i) {
      SCOPED_TRACE(testing::Message() << name << ", damage " << i);
      const std::string path = newest + "/" + name;
      const std::string intact = BytesOf(path);
      // A manifest one line break shorter says the same.
      if (name == "manifest.json" && i == 0) continue;
      damages[i](path);
      ExpectLoads(1, 1);
      EXPECT_EQ(Load().refused[0].path, newest);
      EXPECT_NE(Load().refused[0].reason.find(path), std::string::npos) << Load().refused[0].reason;
      fs::remove_all(path);
      PutBytes(path, intact);
    }
  }
  ExpectLoads(2, 0);
}

TEST_F(Checkpoints, NoticeEveryByteOfAManifestThatMatters) {
  Save(1);
  const std::string path = Save(2).path + "/manifest.json";
  const std::string intact = BytesOf(path);
  for (size_t i = 0; i < intact.size(); ++i) {
    SCOPED_TRACE(i);
    std::string bytes = intact;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    PutBytes(path, bytes);
    // White space may change, what it says may not.
    const LoadedCheckpoint checkpoint = Load();
    EXPECT_EQ(checkpoint.step, checkpoint.refused.empty() ? 2 : 1);
  }
}

TEST_F(Checkpoints, AreAnErrorWhenNoneIsIntact) {
  for (int64_t step : {1, 2}) fs::resize_file(Save(step).path + "/tensors", 20);
  const Error error = ErrorOf([&] { Load(); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  const std::string message = error.what();
  EXPECT_NE(message.find("save-000001-step-1/tensors has 20 bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("save-000002-step-2/tensors has 20 bytes"), std::string::npos) << message;
  EXPECT_TRUE(loaded.Names().empty());
}

TEST_F(Checkpoints, IgnoreAndClearWhatAnInterruptedSaveLeft) {
  const std::string path = Save(1).path;
  for (const char* left : {".tmp-save-000002-step-2", ".tmp-save-removed-save-000000-step-0"}) {
    fs::copy(path, directory / left);
    fs::remove(directory / left + "/manifest.json");
  }
  PutBytes(directory / "notes.txt", "mine");
  ExpectLoads(1, 0);
  Save(2);
  EXPECT_EQ(Folders(),
            (std::vector<std::string>{"notes.txt", "save-000001-step-1", "save-000002-step-2"}));
}

// A process killed in the middle of each file: by the limit on the size of a file, whose signal it
// doesn't handle. Only the last limit lets the save finish.
TEST_F(Checkpoints, SurviveAKilledSave) {
  const std::string path = Save(1).path;
  const auto largest = static_cast<rlim_t>(fs::file_size(path + "/tensors"));
  for (rlim_t limit : {rlim_t{0}, rlim_t{30}, rlim_t{100}, largest / 2, largest - 1, largest}) {
    SCOPED_TRACE(limit);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit none{0, 0};
      setrlimit(RLIMIT_CORE, &none);
      const rlimit size{limit, limit};
      setrlimit(RLIMIT_FSIZE, &size);
      signal(SIGXFSZ, SIG_DFL);
      Save(2);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WIFSIGNALED(status), limit < largest);
    ExpectLoads(limit < largest ? 1 : 2, 0);
  }
  Save(3);
  EXPECT_EQ(Folders(), (std::vector<std::string>{"save-000002-step-2", "save-000003-step-3"}));
}

TEST_F(Checkpoints, LeaveNothingBehindOnAFullDisk) {
  Save(1);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  for (rlim_t limit : {rlim_t{0}, rlim_t{30}, rlim_t{3000}}) {
    SCOPED_TRACE(limit);
    const rlimit size{limit, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &size);
    const Error error = ErrorOf([&] { Save(2); });
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    EXPECT_NE(std::string(error.what()).find("/tensors: File too large"), std::string::npos)
        << error.what();
    EXPECT_EQ(Folders(), std::vector<std::string>{"save-000001-step-1"});
  }
  signal(SIGXFSZ, handler);
  ExpectLoads(1, 0);
}

TEST_F(Checkpoints, RefuseADirectoryThatCannotBe) {
  PutBytes(directory / "file", "x");
  for (const char* name : {"file", "file/below"}) {
    const Error error = ErrorOf([&] { SaveCheckpoint(directory / name, program, scope, 1, {}); });
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find(directory / name), std::string::npos) << error.what();
    EXPECT_EQ(ErrorOf([&] { LoadLatestCheckpoint(directory / name, program, &loaded); }).code(),
              ErrorCode::kIo);
  }
}

TEST_F(Checkpoints, RefuseADirectoryWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  Save(1);
  fs::permissions(directory.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(ErrorOf([&] { Save(2); }).code(), ErrorCode::kIo);
  ExpectLoads(1, 0);
  fs::permissions(directory.path(), fs::perms::owner_all);
}

TEST_F(Checkpoints, CheckTheArgumentsBeforeTheyWrite) {
  EXPECT_EQ(ErrorOf([&] { Save(-1); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] { Save(1, {.keep_last = 0}); }).code(), ErrorCode::kInvalidArgument);
  scope.Erase("w");
  EXPECT_EQ(ErrorOf([&] { SaveCheckpoint(directory.path(), program, scope, 1, {}); }).code(),
            ErrorCode::kNotFound);
  EXPECT_TRUE(Folders().empty());
}

TEST_F(Checkpoints, RefuseAnotherProgram) {
  Save(1);
  const auto load_error = [&] { return ErrorOf([&] { Load(); }); };
  AddPersistable("velocity", DType::kFloat32, {1000});
  const Error lacks = load_error();
  EXPECT_EQ(lacks.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(lacks.what()).find("lacks the program's persistable \"velocity\""),
            std::string::npos)
      << lacks.what();
  program.root()->RemoveVar("velocity");
  program.root()->GetVar("w")->dims = {999};
  EXPECT_EQ(load_error().code(), ErrorCode::kInvalidArgument);
  program.root()->RemoveVar("w");
  EXPECT_EQ(load_error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(loaded.Names().empty());
  const LoadedCheckpoint checkpoint =
      LoadLatestCheckpoint(directory.path(), program, &loaded, {.ignore_extra_variables = true});
  EXPECT_EQ(checkpoint.step, 1);
  EXPECT_EQ(loaded.Names(), std::vector<std::string>{"step"});
}

}  // namespace
}  // namespace skiff
