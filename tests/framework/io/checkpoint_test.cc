#include "framework/io/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "framework/io/byte_stream.h"
#include "framework/ir/program.h"
#include "tests/harness/full_disk.h"
#include "tests/harness/temp_directory.h"

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

TEST_F(Checkpoints, LoadWithoutAProgram) {
  EXPECT_EQ(ErrorOf([&] { LoadVariablesOfLatestCheckpoint(directory.path(), &loaded); }).code(),
            ErrorCode::kNotFound);
  Save(12);
  EXPECT_EQ(LoadVariablesOfLatestCheckpoint(directory.path(), &loaded).step, 12);
  EXPECT_EQ(loaded.Names(), scope.Names());
  EXPECT_EQ(loaded.Get("w").data<float>()[7], 12);
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
  EXPECT_FALSE(HasCheckpoint(directory.path()));
  EXPECT_FALSE(HasCheckpoint(directory / "no"));
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
  EXPECT_TRUE(HasCheckpoint(directory.path()));
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

// As a kill leaves them after the last save of a training, which no other save follows.
TEST_F(Checkpoints, FinishASaveThatWasInterruptedAtItsEnd) {
  EXPECT_TRUE(FinishLastSave(directory / "none").removed.empty());
  EXPECT_FALSE(fs::exists(directory / "none"));
  for (int step = 1; step <= 4; ++step) Save(step, {.keep_last = 4});
  fs::rename(directory / "save-000001-step-1", directory / ".tmp-save-removed-save-000001-step-1");
  fs::create_directory(directory / ".tmp-save-000005-step-5");
  // Only complete ones count.
  fs::remove(directory / "save-000004-step-4/manifest.json");
  const auto finish = [&] { return FinishLastSave(directory.path()).removed; };
  EXPECT_TRUE(finish().empty());
  EXPECT_EQ(Folders(), (std::vector<std::string>{"save-000002-step-2", "save-000003-step-3",
                                                 "save-000004-step-4"}));
  Save(5, {.keep_last = 4});
  EXPECT_EQ(finish(), std::vector<std::string>{directory / "save-000002-step-2"});
  ExpectLoads(5, 0);
  EXPECT_TRUE(finish().empty());
  EXPECT_EQ(ErrorOf([&] { FinishLastSave(directory.path(), {.keep_last = 0}); }).code(),
            ErrorCode::kInvalidArgument);
}

// One that is no more when it is read, because a training goes on there, is none that is lost.
TEST_F(Checkpoints, AreFoundWhileAnotherProcessSavesAndDeletes) {
  constexpr int64_t kSaves = 60;
  Save(1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int64_t step = 2; step <= kSaves; ++step) Save(step, {.keep_last = 1});
    _exit(0);
  }
  int64_t last = 1;
  for (int status = 0; waitpid(child, &status, WNOHANG) == 0;) {
    const LoadedCheckpoint checkpoint = Load();
    EXPECT_GE(checkpoint.step, last);
    EXPECT_TRUE(checkpoint.refused.empty()) << checkpoint.refused[0].reason;
    last = checkpoint.step;
  }
  ExpectLoads(kSaves, 0);
}

TEST_F(Checkpoints, RefuseALinkThatLeadsNowhere) {
  Save(1);
  fs::create_symlink("nowhere", directory / "save-000002-step-2");
  ExpectLoads(1, 1);
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

TEST_F(Checkpoints, LeaveNothingBehindWhereNoFileMayGrow) {
  Save(1);
  for (const rlim_t room : {rlim_t{0}, rlim_t{30}, rlim_t{3000}}) {
    SCOPED_TRACE(room);
    ExpectError(
        [&] {
          const FileSizeLimit limit(room);
          Save(2);
        },
        ErrorCode::kResourceExhausted,
        "write " + directory / ".tmp-save-000002-step-2/tensors: File too large");
    EXPECT_EQ(Folders(), std::vector<std::string>{"save-000001-step-1"});
  }
  ExpectLoads(1, 0);
}

// On a real file system, with less and less room: some saves fail at the tensors, some at the small
// files after them, the last at the folder itself.
TEST_F(Checkpoints, LeaveNothingBehindOnAFullDisk) {
  TinyDisk disk(directory / "disk", 128 << 10);
  if (!disk.is_mounted()) GTEST_SKIP() << "no permission to mount";
  const auto save = [&](int64_t step) {
    scope.FindMutable("w")->data<float>()[7] = static_cast<float>(step);
    scope.FindMutable("step")->data<int64_t>()[0] = step;
    SaveCheckpoint(disk.path(), program, scope, step, {{"epoch", std::to_string(step)}});
  };
  save(1);
  int refused = 0;
  for (int64_t room = 0; room <= (20 << 10); room += 4 << 10) {
    SCOPED_TRACE(room);
    disk.FillUpTo(room);
    try {
      save(2);
      EXPECT_GE(room, 12 << 10);
      fs::remove_all(disk.path() + "/save-000002-step-2");
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
      EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(NamesIn(disk.path()), (std::vector<std::string>{"filling", "save-000001-step-1"}));
    const LoadedCheckpoint checkpoint = LoadLatestCheckpoint(disk.path(), program, &loaded);
    EXPECT_EQ(checkpoint.step, 1);
    EXPECT_EQ(loaded.Get("w").data<float>()[7], 1);
    disk.Empty();
  }
  EXPECT_GE(refused, 3);
  save(3);
  EXPECT_EQ(LoadLatestCheckpoint(disk.path(), program, &loaded).step, 3);
}

TEST_F(Checkpoints, RefuseADirectoryThatCannotBe) {
  PutBytes(directory / "file", "x");
  for (const char* name : {"file", "file/below"}) {
    ExpectError([&] { SaveCheckpoint(directory / name, program, scope, 1, {}); }, ErrorCode::kIo,
                "create directory " + directory / name + ": Not a directory");
    ExpectError([&] { LoadLatestCheckpoint(directory / name, program, &loaded); }, ErrorCode::kIo,
                "list " + directory / name + ": Not a directory");
  }
}

// Root may write everywhere but here.
TEST_F(Checkpoints, RefuseADirectoryThatNobodyMakes) {
  const Error error = ErrorOf([&] { SaveCheckpoint("/proc/skiff", program, scope, 1, {}); });
  EXPECT_NE(std::string(error.what()).find("create directory /proc/skiff: "), std::string::npos)
      << error.what();
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
  ExpectError([&] { Save(-1); }, ErrorCode::kInvalidArgument, "step = -1, expected at least 0");
  ExpectError([&] { Save(1, {.keep_last = 0}); }, ErrorCode::kInvalidArgument,
              "keep_last = 0, expected at least 1");
  scope.Erase("w");
  ExpectError([&] { SaveCheckpoint(directory.path(), program, scope, 1, {}); },
              ErrorCode::kNotFound, "the scope holds no variable \"w\"");
  EXPECT_TRUE(Folders().empty());
}

// Nothing is saved that the reader would refuse.
TEST_F(Checkpoints, SaveNoMoreNamesThanAreRead) {
  Save(1);
  const std::string name(size_t{64} << 20, 'n');
  AddPersistable(name, DType::kFloat32, {1});
  scope.Set(name, Tensor::FromValues<float>({1}, {1}));
  const Error error = ErrorOf([&] { Save(2); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(std::string(error.what()).find("the names of 3 variables make a manifest of "), 0u)
      << std::string(error.what()).substr(0, 100);
  EXPECT_EQ(Folders(), std::vector<std::string>{"save-000001-step-1"});
}

TEST_F(Checkpoints, RefuseAnotherProgram) {
  Save(1);
  const std::string path = directory / "save-000001-step-1";
  const auto expect = [&](const std::string& message) {
    ExpectError([&] { Load(); }, ErrorCode::kInvalidArgument, path + ": " + message);
  };
  AddPersistable("velocity", DType::kFloat32, {1000});
  expect("the checkpoint lacks the program's persistable \"velocity\"");
  program.root()->RemoveVar("velocity");
  program.root()->GetVar("w")->dims = {999};
  expect("variable \"w\": the file holds float32 [1000], the program expects float32 [999]");
  program.root()->GetVar("w")->dims = {1000};
  program.root()->GetVar("w")->dtype = DType::kFloat64;
  expect("variable \"w\": the file holds float32 [1000], the program expects float64 [1000]");
  program.root()->RemoveVar("w");
  expect("the checkpoint holds a variable \"w\", which is no persistable of the program");
  EXPECT_TRUE(loaded.Names().empty());
  const LoadedCheckpoint checkpoint =
      LoadLatestCheckpoint(directory.path(), program, &loaded, {.ignore_extra_variables = true});
  EXPECT_EQ(checkpoint.step, 1);
  EXPECT_EQ(loaded.Names(), std::vector<std::string>{"step"});
}

// What the trainer refuses is refused before anything is loaded.
TEST_F(Checkpoints, AskTheTrainerBeforeTheyAreLoaded) {
  Save(1);
  const auto refuse = [](const TrainerState& state) {
    Throw(ErrorCode::kInvalidArgument, "epoch ", state.at("epoch"), ", expected 7");
  };
  loaded.Set("w", Tensor::FromValues<float>({1}, {5}));
  ExpectError(
      [&] { LoadLatestCheckpoint(directory.path(), program, &loaded, {.check_state = refuse}); },
      ErrorCode::kInvalidArgument, directory / "save-000001-step-1: epoch 1, expected 7");
  EXPECT_EQ(loaded.Names(), std::vector<std::string>{"w"});
  EXPECT_EQ(loaded.Get("w").Item<float>(), 5);
}

// Every length of the small files, and many of the large one.
TEST_F(Checkpoints, FallBackWhereverTheNewestIsCut) {
  Save(1);
  const std::string newest = Save(2).path;
  for (const std::string& name : kFiles) {
    const std::string path = newest + "/" + name;
    const std::string intact = BytesOf(path);
    for (size_t size = 0; size < intact.size(); size += name == "tensors" ? 61 : 1) {
      SCOPED_TRACE(testing::Message() << name << ", " << size << " bytes");
      PutBytes(path, intact.substr(0, size));
      // The line break at its end says nothing.
      const bool whole = name == "manifest.json" && size + 1 == intact.size();
      ExpectLoads(whole ? 2 : 1, whole ? 0 : 1);
    }
    PutBytes(path, intact);
  }
  ExpectLoads(2, 0);
}

// Manifests that are intact, but not ours.
class ForeignManifest : public Checkpoints {
 protected:
  using Json = nlohmann::json;

  ForeignManifest() : path_(Save(1).path + "/manifest.json") {}

  // The manifest, changed and signed again.
  void Change(const std::function<void(Json*)>& change) {
    Json document = Json::parse(intact_);
    change(&document["manifest"]);
    const std::string bytes = document["manifest"].dump();
    document["crc32"] = Crc32Text(Crc32(0, bytes.data(), static_cast<int64_t>(bytes.size())));
    PutBytes(path_, document.dump());
  }

  void ExpectReason(const std::string& reason) {
    const std::string folder = directory / "save-000001-step-1";
    ExpectError(
        [&] { Load(); }, ErrorCode::kDataLoss,
        directory.path() + ": none of 1 checkpoints is intact:\n  " + folder + ": " + reason);
    EXPECT_TRUE(loaded.Names().empty());
  }
  void ExpectOurs(const std::string& reason) { ExpectReason(path_ + ": " + reason); }

  std::string path_;
  const std::string intact_ = BytesOf(path_);
};

TEST_F(ForeignManifest, IsToldByWhatWasFoundAndExpected) {
  Change([](Json*) {});
  ExpectLoads(1, 0);
  loaded.Erase("w");
  loaded.Erase("step");
  Change([](Json* manifest) { (*manifest)["version"] = 2; });
  ExpectOurs("version 2, expected 1");
  Change([](Json* manifest) { (*manifest)["format"] = "tar"; });
  ExpectOurs("format \"tar\", expected \"skiff-checkpoint\"");
  Change([](Json* manifest) { (*manifest)["step"] = -1; });
  ExpectOurs("\"step\" is -1, expected a count");
  Change([](Json* manifest) { (*manifest)["step"] = 1.5; });
  ExpectOurs("\"step\" is 1.5, expected a count");
  Change([](Json* manifest) { (*manifest)["files"].erase(1); });
  ExpectOurs("expected the files tensors and state.json");
  Change([](Json* manifest) { (*manifest)["files"][0]["name"] = "../tensors"; });
  ExpectOurs("expected the files tensors and state.json");
  Change([](Json* manifest) { (*manifest)["files"][0]["crc32"] = "123"; });
  ExpectOurs("crc32 \"123\", expected 8 digits");
  Change([](Json* manifest) { (*manifest)["files"][0]["crc32"] = "0123456g"; });
  ExpectOurs("'g' is no hexadecimal digit");
  Change([](Json* manifest) { (*manifest)["files"][0]["bytes"] = 17; });
  ExpectReason(directory / "save-000001-step-1/tensors has 4057 bytes, expected 17");
  Change([](Json* manifest) { (*manifest)["files"][0]["crc32"] = "01234567"; });
  const Error crc = ErrorOf([&] { Load(); });
  EXPECT_NE(std::string(crc.what()).find("save-000001-step-1/tensors: CRC-32 is "),
            std::string::npos)
      << crc.what();
  // The streams don't end where the names do.
  Change([](Json* manifest) { (*manifest)["variables"] = {"step", "w", "x"}; });
  const Error more = ErrorOf([&] { Load(); });
  EXPECT_NE(std::string(more.what()).find("variable \"x\": "), std::string::npos) << more.what();
  PutBytes(path_, "{}");
  EXPECT_NE(std::string(ErrorOf([&] { Load(); }).what()).find("manifest.json: "),
            std::string::npos);
}

// Printing a document that nests deeply takes a call a level: the stack would end first.
TEST_F(ForeignManifest, MayNestDeeply) {
  const std::string deep(1000000, '[');
  const std::string closed = deep + std::string(1000000, ']');
  for (const std::string& value : {deep, closed}) {
    PutBytes(path_, "{\"crc32\": \"00000000\", \"manifest\": " + value + "}");
    ExpectOurs("JSON nested deeper than 32 levels");
    PutBytes(path_, intact_);
    const std::string state = directory / "save-000001-step-1/state.json";
    const std::string state_bytes = BytesOf(state);
    const std::string bytes = "{\"text\": {\"a\": " + value + "}, \"hex\": {}}";
    PutBytes(state, bytes);
    Change([&bytes](Json* manifest) {
      (*manifest)["files"][1]["bytes"] = bytes.size();
      (*manifest)["files"][1]["crc32"] =
          Crc32Text(Crc32(0, bytes.data(), static_cast<int64_t>(bytes.size())));
    });
    ExpectReason(state + ": JSON nested deeper than 32 levels");
    PutBytes(state, state_bytes);
  }
}

// Random ops draw by it: without it a resumed training would repeat its masks.
TEST_F(Checkpoints, HoldTheStepCounterOfRuns) {
  scope.Set(kStepCounterName, Tensor::FromValues<int64_t>({1}, {41}));
  loaded.Set(kStepCounterName, Tensor::FromValues<int64_t>({1}, {0}));
  Save(3);
  Load();
  EXPECT_EQ(loaded.Get(kStepCounterName).Item<int64_t>(), 41);
  scope.Set(kStepCounterName, Tensor::FromValues<float>({1}, {41}));
  Save(4);
  EXPECT_THROW(Load(), Error);
}

}  // namespace
}  // namespace skiff
