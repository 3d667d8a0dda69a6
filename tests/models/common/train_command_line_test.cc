// Runs the train programs as a user does: a mistake in the command line, the data or the checkpoint
// is one line of "error: …" and damages nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  int status = -1;
  std::string output;  // of stdout and stderr

  // Returns the line that starts with `start`.
  std::string Line(const std::string& start) const {
    const size_t begin = output.find(start);
    if (begin == std::string::npos) return output;
    return output.substr(begin, output.find('\n', begin) - begin);
  }
};

Outcome Train(const std::string& model, const std::string& flags) {
  const std::string command =
      StrCat("models/", model, "/train --threads=1 --limit_samples=128 --validation_samples=32 ",
             flags, " 2>&1");
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> chunk;
  size_t got = 0;
  while ((got = fread(chunk.data(), 1, chunk.size(), pipe)) > 0) {
    outcome.output.append(chunk.data(), got);
  }
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

class CommandLine : public ::testing::Test {
 protected:
  std::string OutputDir() const { return " --output_dir=" + directory_ / "run"; }

  void ExpectRefused(const std::string& model, const std::string& flags, const std::string& message,
                     int status = 1) {
    SCOPED_TRACE(flags);
    const Outcome outcome = Train(model, flags + OutputDir());
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.Line("error: "), "error: " + message);
    EXPECT_THAT(outcome.output, EndsWith("\n"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
  }

  TempDirectory directory_;
};

TEST_F(CommandLine, NamesTheFlagTheValueAndWhatIsExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"--batch_size=0", "batch_size = 0: expected at least 1"},
      {"--batch_size=-5", "batch_size = -5: expected at least 1"},
      {"--batch_size=129",
       "batch_size = 129 is more than the 128 samples, and incomplete batches are dropped"},
      {"--learning_rate=-0.5", "learning_rate = -0.5: expected a finite number, not negative"},
      {"--learning_rate=nan", "learning_rate = nan: expected a finite number, not negative"},
      {"--learning_rate=1e99", "learning_rate = inf: expected a finite number, not negative"},
      {"--weight_decay=-1", "weight_decay = -1: expected a finite number, not negative"},
      {"--epochs=0", "epochs = 0: expected at least 1"},
      {"--threads=-1", "threads = -1: expected no negative number"},
      {"--threads=2000000000", "threads = 2000000000: expected at most 4096"},
      {"--epochs=1000000000000", "epochs = 1000000000000: expected at most 1000000000"},
      {"--limit_samples=-1",
       "limit_samples = -1, validation_samples = 32: expected no negative numbers"},
      {"--warmup=1000",
       "warm-up over 1000 of 30 updates: expected 0 to 29, or -1 for a tenth of them"},
      {"--gradient_merge=0", "gradient_merge = 0: expected at least 1 step"},
      {"--global_batch=-1", "global_batch = -1: expected no negative number"},
      {"--global_batch=100",
       "global_batch = 100: expected a multiple of 64, 1 rank with a batch_size of 64"},
      {"--reduction=tree", "reduction \"tree\": expected auto, ranks or fast"},
      {"--collective_timeout=0", "collective_timeout = 0: expected a number of seconds above 0"},
      {"--bucket_bytes=-1", "bucket_bytes = -1: expected no negative number"},
      {"--save_every=-1", "save_every = -1: expected no negative number"},
      {"--early_stop=-1", "early_stop = -1: expected no negative number"},
      {"--stop_after=-1", "stop_after = -1: expected no negative number"},
      {"--optimizer=adamq",
       "optimizer \"adamq\": expected one of adadelta, adagrad, adam, adamax, adamw, "
       "decayed_adagrad, ftrl, lamb, lars_momentum, momentum, rmsprop, sgd"},
      {"--optimizer=adamw --optimizer_options=momentum=0.9",
       "optimizer \"adamw\" has no option \"momentum\": expected one of beta1, beta2, epsilon, "
       "lazy_mode"},
      {"--optimizer_options=momentum",
       "optimizer_options \"momentum\": expected a name, an equals sign and a number"},
      {"--optimizer_options=momentum=0.5,momentum=0.6", "optimizer_options name momentum twice"},
      {"--optimizer_options=use_nesterov=2", "option use_nesterov = 2: expected 0 or 1"},
      {"--exclude_from_decay=.b_",
       "optimizer \"momentum\" excludes no parameter from decay: expected adamw, lamb or "
       "lars_momentum"},
      {"--clip_norm=-1", "clip_norm = -1: expected a finite number, not negative"},
      {"--model_average=median", "model_average \"median\": expected none, window or ema"},
      {"--model_average=window --average_window=2", "average_window = 2, expected one in [0, 1]"},
      {"--model_average=ema --ema_decay=1", "ema_decay = 1, expected one in [0, 1)"},
      {"--math=half", "math \"half\": expected full or tf32"},
      {"--precision=half", "precision \"half\": expected float32, bfloat16 or float16"},
      {"--precision_level=O2", "precision_level \"O2\": expected parameters or casts"},
      {"--precision=float16 --loss_scale=some",
       "loss_scale \"some\": expected auto, dynamic or a positive number"},
      {"--loss_scale=1024", "loss_scale = 1024: expected precision to be bfloat16 or float16"},
      {"--save_precision=int8", "save_precision \"int8\": expected float32, bfloat16 or float16"},
      {"--keep_float32=softmax",
       "keep_float32 = softmax: expected precision or save_precision to be bfloat16 or float16"},
      {"--schedule=noam", "schedule \"noam\": expected constant, cosine, linear or step"},
      {"--augment=rotate", "augment \"rotate\": expected auto, none, crop or crop_flip"},
      {"--data=imagenet",
       "data \"imagenet\": expected generated, mnist:DIR, cifar10:DIR or cifar100:DIR"},
      {"--data=mnist:",
       "data \"mnist:\": expected generated, mnist:DIR, cifar10:DIR or cifar100:DIR"},
      {"--hidden_layers=-1", "perceptron: hidden_layers = -1, expected at least 0"},
      {"--hidden_layers=2000000000",
       "perceptron: hidden_layers = 2000000000, expected at most 1000"},
  };
  for (const auto& [flags, message] : cases) ExpectRefused("mlp", flags, message);
}

TEST_F(CommandLine, RefusesWhatIsNoFlagWithAStatusOfItsOwn) {
  ExpectRefused("mlp", "--learning_rate=fast",
                "--learning_rate=fast: expected a value of type double", 2);
  ExpectRefused("mlp", "word", "\"word\" is no flag; --help lists them", 2);
}

TEST_F(CommandLine, NamesAnUnknownDepth) {
  const Outcome outcome = Train("resnet", "--depth=21" + OutputDir());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.Line("error: "),
              AllOf(StartsWith("error: ResNet of depth 21: expected "), HasSubstr("20, 32, 34")));
}

TEST_F(CommandLine, NamesTheDataThatIsNotThere) {
  ExpectRefused("mlp", "--data=mnist:/no/such/place",
                "neither /no/such/place/train-images-idx3-ubyte nor "
                "/no/such/place/train-images-idx3-ubyte.gz exists");
  ExpectRefused("mlp", "--data=cifar10:/no/such/place",
                "open /no/such/place/data_batch_1.bin: No such file or directory");
  ExpectRefused("mlp", "--data=cifar100:/no/such/place",
                "open /no/such/place/train.bin: No such file or directory");
}

TEST_F(CommandLine, MakesADamagedFileOfKernelsAnew) {
  const std::string file = directory_ / "kernels";
  const std::string damaged = "skiff kernel choices, version 1\ncpu\n";
  AtomicWriteFile(file, damaged);
  const Outcome outcome =
      Train("mlp", "--epochs=1 --hidden_units=16 --tune_kernels=" + file + OutputDir());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.Line("warning: "),
            "warning: the cache of kernel choices is damaged and is made anew: " + file +
                ", line 2: expected \"name: value\"");
  EXPECT_NE(BytesOf(file), damaged);
}

TEST_F(CommandLine, NamesAnOutputDirectoryThatCannotBe) {
  AtomicWriteFile(directory_ / "file", "x");
  for (const std::string& path : {directory_ / "file", directory_ / "file/run"}) {
    const Outcome outcome = Train("mlp", "--output_dir=" + path);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.Line("error: "), "error: create directory " + path + ": Not a directory");
  }
}

TEST_F(CommandLine, NamesACheckpointThatIsNotThere) {
  const std::string checkpoints = directory_ / "run/checkpoints";
  ExpectRefused("mlp", "--resume", checkpoints + " holds no checkpoint");
  ExpectRefused("mlp", "--evaluate_only", "list " + checkpoints + ": No such file or directory");
}

// Rejected checkpoints stay as they are, and the training can still continue from them.
TEST_F(CommandLine, NamesWhatAForeignCheckpointWasMadeWith) {
  const std::string flags =
      "--epochs=2 --batch_size=32 --hidden_units=16 --hidden_layers=1 --learning_rate=0.05";
  const Outcome whole = Train("mlp", flags + " --output_dir=" + directory_ / "whole");
  ASSERT_EQ(whole.status, 0) << whole.output;
  const Outcome stopped = Train("mlp", flags + " --stop_after=3" + OutputDir());
  ASSERT_EQ(stopped.status, 0) << stopped.output;
  const std::string where =
      "error: " + directory_ / "run/checkpoints/save-000001-step-3: the checkpoint ";
  const auto expect = [&](const std::string& model, const std::string& other,
                          const std::string& message) {
    SCOPED_TRACE(other);
    for (const char* what : {" --resume", " --evaluate_only"}) {
      const Outcome outcome = Train(model, other + OutputDir() + what);
      EXPECT_EQ(outcome.status, 1);
      EXPECT_EQ(outcome.Line("error: "), where + message);
    }
  };
  const std::string advice =
      ": resume with the old value, or begin anew in another output directory";
  expect("mlp", flags + " --seed=2", "was made with seed = 1, but now it is 2" + advice);
  expect("mlp", flags + " --batch_size=16",
         "was made with batch_size = 32, but now it is 16" + advice);
  expect("mlp", flags + " --precision=bfloat16",
         "was made with precision = float32, but now it is bfloat16" + advice);
  expect("mlp", flags + " --math=tf32", "was made with math = full, but now it is tf32" + advice);
  // Another network: the message names the flag, not the variables.
  expect("mlp", flags + " --hidden_units=8",
         "was made with hidden_units = 16, but now it is 8" + advice);
  expect("lenet", "--epochs=2 --batch_size=32 --learning_rate=0.05",
         "is another program's: it was made with dropout = 0, which this program doesn't have");
  expect("resnet", "--epochs=2 --batch_size=32 --learning_rate=0.05",
         "is another program's: it was made without depth, but now that is 20");

  const Outcome resumed = Train("mlp", flags + OutputDir() + " --resume");
  EXPECT_EQ(resumed.status, 0);
  EXPECT_EQ(resumed.Line("weights "), whole.Line("weights "));
}

TEST_F(CommandLine, ResumesInNoOtherPrecision) {
  const std::string flags = "--epochs=2 --batch_size=32 --hidden_units=16 --precision=bfloat16";
  const Outcome stopped = Train("mlp", flags + " --stop_after=3" + OutputDir());
  ASSERT_EQ(stopped.status, 0) << stopped.output;
  EXPECT_THAT(stopped.Line("bfloat16: "), HasSubstr(" parameters, "));
  const std::pair<const char*, const char*> cases[] = {
      {" --precision=float32", "precision = bfloat16, but now it is float32"},
      {" --precision=float16", "precision = bfloat16, but now it is float16"},
      {" --precision_level=casts", "precision_level = parameters, but now it is casts"},
      {" --keep_float32=relu", "keep_float32 = , but now it is relu"},
  };
  for (const auto& [other, message] : cases) {
    const Outcome outcome = Train("mlp", flags + other + OutputDir() + " --resume");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.Line("error: "), HasSubstr(StrCat("was made with ", message, ": ")));
  }
  const Outcome resumed = Train("mlp", flags + OutputDir() + " --resume");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
}

// What --gradient_merge does, in numbers of samples, and any --batch_size that divides it.
TEST_F(CommandLine, MergesStepsToAGlobalBatch) {
  const std::string flags = "--epochs=2 --batch_size=16 --hidden_units=16";
  const Outcome merged =
      Train("mlp", flags + " --gradient_merge=2 --output_dir=" + directory_ / "a");
  const Outcome global = Train("mlp", flags + " --global_batch=32 --stop_after=3" + OutputDir());
  ASSERT_EQ(global.status, 0) << global.output;
  const Outcome resumed = Train("mlp", flags + " --global_batch=32 --resume" + OutputDir());
  EXPECT_THAT(resumed.output, HasSubstr("save-000001-step-4: step 4, "));
  EXPECT_EQ(resumed.Line("weights "), merged.Line("weights "));
  EXPECT_THAT(Train("mlp", flags + " --global_batch=64 --resume" + OutputDir()).Line("error: "),
              HasSubstr("was made with global_batch = 32, but now it is 64: "));
}

// The images of a folder count, not where it is.
TEST_F(CommandLine, NamesTheFileThatHasChanged) {
  const auto write = [&](const std::string& folder, char pixel) {
    CreateDirectories(folder);
    const std::string count("\0\0\0\xa0", 4);
    AtomicWriteFile(folder + "/train-images-idx3-ubyte",
                    std::string("\0\0\x08\x03", 4) + count + std::string("\0\0\0\2\0\0\0\2", 8) +
                        std::string(160 * 4 - 1, '\0') + pixel);
    AtomicWriteFile(folder + "/train-labels-idx1-ubyte",
                    std::string("\0\0\x08\x01", 4) + count + std::string(160, '\1'));
  };
  write(directory_ / "images", 1);
  write(directory_ / "copy", 1);
  write(directory_ / "other", 2);
  const std::string flags =
      "--epochs=2 --batch_size=32 --hidden_units=16" + OutputDir() + " --data=mnist:";
  ASSERT_EQ(Train("mlp", flags + directory_ / "images --stop_after=3").status, 0);
  EXPECT_EQ(Train("mlp", flags + directory_ / "copy/ --resume --stop_after=4").status, 0);
  const std::string refusal = Train("mlp", flags + directory_ / "other --resume").Line("error: ");
  EXPECT_THAT(refusal, HasSubstr("made with data (contents of train-images-idx3-ubyte) = 656 bytes "
                                 "with CRC-32 "));
  EXPECT_THAT(refusal, HasSubstr(", but now it is 656 bytes with CRC-32 "));
}

// What a newcomer does: run the same command twice, then one that the program suggests.
TEST_F(CommandLine, RefusesTheDirectoryOfATrainingAndNamesOthers) {
  const std::string flags = "--epochs=1 --batch_size=32 --hidden_units=16";
  const Outcome first = Train("mlp", flags + OutputDir());
  ASSERT_EQ(first.status, 0) << first.output;
  const std::string log = BytesOf(directory_ / "run/training_log.jsonl");
  const Outcome second = Train("mlp", flags + OutputDir());
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.Line("error: "),
            "error: " + directory_ / "run" +
                " holds a training: resume it, or choose another output directory");
  EXPECT_EQ(BytesOf(directory_ / "run/training_log.jsonl"), log);
  const Outcome resumed = Train("mlp", flags + OutputDir() + " --resume");
  EXPECT_EQ(resumed.status, 0);
  EXPECT_EQ(resumed.Line("weights "), first.Line("weights "));
  EXPECT_THAT(first.output.substr(first.output.find("try next:\n")),
              AllOf(HasSubstr("--dropout=0.3 --output_dir=mlp_run_3\n"),
                    EndsWith("--hidden_units=512 --output_dir=mlp_run_4\n")));
}

// If the newest checkpoint is damaged, the program skips it and says so.
TEST_F(CommandLine, NamesATornCheckpoint) {
  const std::string flags = "--epochs=2 --batch_size=32 --hidden_units=16" + OutputDir();
  ASSERT_EQ(Train("mlp", flags + " --save_every=2 --stop_after=6").status, 0);
  const std::string newest = directory_ / "run/checkpoints/save-000005-step-6";
  ASSERT_TRUE(std::filesystem::exists(newest));
  std::filesystem::resize_file(newest + "/tensors", 100);
  const Outcome resumed = Train("mlp", flags + " --save_every=2 --resume");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.Line("skipped "),
              AllOf(StartsWith("skipped " + newest + ": " + newest + "/tensors has 100 bytes"),
                    HasSubstr(", expected ")));
  EXPECT_THAT(resumed.output,
              HasSubstr("resumed from " + directory_ / "run/checkpoints/save-000004-step-6"));
}

}  // namespace
}  // namespace skiff::models
