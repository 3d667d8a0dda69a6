#include "framework/command_line/command_line.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>

#include "framework/base/error.h"
#include "framework/command_line/argument_text.h"
#include "tests/harness/foreign_locale.h"
#include "tests/harness/temp_directory.h"

DEFINE_int64(test_count, 1,
             "How many there are, told in a text that takes more than one line of the help.");
DEFINE_bool(test_switch, false, "Whether it is on.");
DEFINE_string(test_operand, "", "What no flag sets.");
DEFINE_double(test_share, 0.5, "How much of it.");

namespace skiff {
namespace {

struct Outcome {
  int status = 0;
  std::string out;
  std::string error;
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
    return stream << outcome.status << ", out: " << outcome.out << ", error: " << outcome.error;
  }
};

Outcome Call(std::vector<std::string> arguments, Command command) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.status = CommandMain(static_cast<int>(argv.size()), argv.data(), command);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.error = testing::internal::GetCapturedStderr();
  return outcome;
}

// What runs only if the arguments are good.
Outcome Refusal(const std::vector<std::string>& arguments) {
  return Call(arguments, {.run = [] {
                ADD_FAILURE() << "run";
                return 0;
              }});
}

TEST(CommandMain, SetsTheFlagsAndReturnsTheStatusOfTheRun) {
  const auto expect = [](const std::vector<std::string>& arguments, int64_t count, bool is_on) {
    SCOPED_TRACE(ShellCommand(arguments));
    const Outcome outcome = Call(arguments, {.run = [&] {
                                   EXPECT_EQ(FLAGS_test_count, count);
                                   EXPECT_EQ(FLAGS_test_switch, is_on);
                                   return 5;
                                 }});
    EXPECT_EQ(outcome, (Outcome{.status = 5}));
  };
  expect({"--test_count=2", "--test_switch"}, 2, true);
  expect({"--test_count", "-3", "--notest_switch"}, -3, false);
  expect({"-test_switch=true", "-test_count", "4"}, 4, true);
  expect({"--test_switch=false"}, 4, false);
}

TEST(CommandMain, TellsWhichFlagsAreGiven) {
  const gflags::FlagSaver saver;
  const auto share_is_given = [](const std::vector<std::string>& arguments) {
    const Command command{.run = [] { return IsFlagGiven("test_share") ? 5 : 6; },
                          .flag_defaults = {{"test_share", "0.75"}}};
    return Call(arguments, command).status == 5;
  };
  EXPECT_FALSE(share_is_given({"--test_switch"}));
  EXPECT_TRUE(share_is_given({"--test_share=0.75"})) << "though that is its default";
}

TEST(CommandMain, RefusesFlagsThatWouldChangeNothing) {
  const gflags::FlagSaver saver;
  const Command command{.run = [] {
    RefuseFlags({"test_operand", "test_share"}, "nothing is shared");
    return 5;
  }};
  EXPECT_EQ(Call({"--test_count=2"}, command), (Outcome{.status = 5}));
  EXPECT_EQ(
      Call({"--test_share=0.5"}, command),
      (Outcome{.status = 1, .error = "error: --test_share changes nothing: nothing is shared\n"}));
}

INSTANTIATE_TEST_SUITE_P(, InForeignLocale, ForeignLocales(), ForeignLocaleName);

TEST_P(InForeignLocale, FlagsAreNumbersAsEverywhere) {
  const gflags::FlagSaver saver;
  const Command command{.run = [] {
    EXPECT_EQ(FLAGS_test_share, 0.25);
    return 5;
  }};
  EXPECT_EQ(Call({"--test_share=0.25"}, command), (Outcome{.status = 5}));
  EXPECT_NE(Call({"--help"}, command).out.find("--test_share  (double, default 0.5)"),
            std::string::npos);
}

TEST(CommandMain, RefusesArgumentsWithStatus2) {
  const auto expect = [](const std::vector<std::string>& arguments, const std::string& message) {
    EXPECT_EQ(Refusal(arguments), (Outcome{.status = 2, .error = "error: " + message + "\n"}));
  };
  expect({"--no_such_flag=1"}, "there is no flag --no_such_flag");
  expect({"--no_such_flag"}, "there is no flag --no_such_flag; --help lists them");
  expect({"--test_switch", "word"}, "\"word\" is no flag; --help lists them");
  expect({"-"}, "\"-\" is no flag; --help lists them");
  expect({"--test_count"}, "--test_count needs a value");
  expect({"--test_count=many"}, "--test_count=many: expected a value of type int64");
  expect({"--test_count=9999999999999999999"},
         "--test_count=9999999999999999999: expected a value of type int64");
}

TEST(CommandMain, AnyExceptionIsAMessageAndStatus1) {
  const auto run = []() -> int { throw std::runtime_error("out of luck"); };
  EXPECT_EQ(Call({}, {.run = run}), (Outcome{.status = 1, .error = "error: out of luck\n"}));
  const auto refuse = []() -> int { Throw(ErrorCode::kNotFound, "no such thing"); };
  EXPECT_EQ(Call({}, {.run = refuse}), (Outcome{.status = 1, .error = "error: no such thing\n"}));
}

TEST(CommandMain, HelpListsTheFlagsOfTheProgramWithItsDefaults) {
  const Outcome outcome = Call({"--help"}, {.usage = "program [flags]",
                                            .summary = "Does it.",
                                            .run =
                                                [] {
                                                  ADD_FAILURE() << "run";
                                                  return 1;
                                                },
                                            .epilogue = [] { return "The end.\n"; },
                                            .flag_defaults = {{"test_count", "7"}}});
  EXPECT_EQ(outcome, (Outcome{.out = "Does it.\n\n"
                                     "usage: program [flags]\n\n"
                                     "  --test_count  (int64, default 7)\n"
                                     "      How many there are, told in a text that takes more "
                                     "than one line of the\n"
                                     "      help.\n"
                                     "  --test_operand  (string, default \"\")\n"
                                     "      What no flag sets.\n"
                                     "  --test_share  (double, default 0.5)\n"
                                     "      How much of it.\n"
                                     "  --test_switch  (bool, default false)\n"
                                     "      Whether it is on.\n\n"
                                     "The end.\n"}));
}

TEST(CommandMain, TakesAnOperandAmongTheFlags) {
  const auto expect = [](const std::vector<std::string>& arguments, const std::string& operand) {
    SCOPED_TRACE(ShellCommand(arguments));
    const Command command{.usage = "program FILE",
                          .run =
                              [&] {
                                EXPECT_EQ(FLAGS_test_operand, operand);
                                return 5;
                              },
                          .flags = {"test_switch"},
                          .operand = "test_operand"};
    EXPECT_EQ(Call(arguments, command), (Outcome{.status = 5}));
  };
  expect({"a.pb"}, "a.pb");
  expect({"--test_switch", "folder/b c.pb"}, "folder/b c.pb");
  expect({"-", "--notest_switch"}, "-");
  expect({""}, "");
}

TEST(CommandMain, RefusesAnotherNumberOfOperandsThanOne) {
  const Command command{.usage = "program FILE",
                        .run =
                            [] {
                              ADD_FAILURE() << "run";
                              return 0;
                            },
                        .flags = {"test_switch"},
                        .operand = "test_operand"};
  const auto expect = [&](const std::vector<std::string>& arguments, const std::string& message) {
    EXPECT_EQ(Call(arguments, command),
              (Outcome{.status = 2, .error = "error: " + message + "\n"}));
  };
  expect({}, "expected one argument that is no flag, found 0; usage: program FILE");
  expect({"a", "--test_switch", "b"},
         "expected one argument that is no flag, found 2; usage: program FILE");
  expect({"--test_operand=a"}, "there is no flag --test_operand");
}

TEST(CommandMain, ACommandThatNamesItsFlagsTakesNoOthers) {
  const Command command{
      .usage = "program", .summary = "Does it.", .run = [] { return 0; }, .flags = {"test_switch"}};
  EXPECT_EQ(Call({"--test_switch"}, command), Outcome{});
  EXPECT_EQ(Call({"--test_count=3"}, command),
            (Outcome{.status = 2, .error = "error: there is no flag --test_count\n"}));
  EXPECT_EQ(Call({"--help"}, command).out,
            "Does it.\n\nusage: program\n\n"
            "  --test_switch  (bool, default false)\n      Whether it is on.\n");
}

Outcome CallSubcommand(std::vector<std::string> arguments) {
  const std::vector<Subcommand> subcommands = {
      {.name = "count",
       .summary = "counts",
       .command = {.usage = "program count [flags]",
                   .summary = "Counts.",
                   .run = [] { return static_cast<int>(FLAGS_test_count); },
                   .flags = {"test_count"}}},
      {.name = "switch",
       .summary = "switches",
       .command = {.usage = "program switch",
                   .summary = "Switches.",
                   .run = [] { return 7; },
                   .flags = {"test_switch"}}}};
  arguments.insert(arguments.begin(), "some/program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.status =
      SubcommandMain(static_cast<int>(argv.size()), argv.data(), "Does things.", subcommands);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.error = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(SubcommandMain, RunsTheOneThatIsNamed) {
  EXPECT_EQ(CallSubcommand({"count", "--test_count=5"}), (Outcome{.status = 5}));
  EXPECT_EQ(CallSubcommand({"switch"}), (Outcome{.status = 7}));
  EXPECT_EQ(CallSubcommand({"switch", "--test_count=5"}),
            (Outcome{.status = 2, .error = "error: there is no flag --test_count\n"}));
}

TEST(SubcommandMain, HelpListsThemAndThatOfOneItsFlags) {
  EXPECT_EQ(CallSubcommand({"--help"}),
            (Outcome{.out = "Does things.\n\nusage: program SUBCOMMAND [flags]\n\n"
                            "  count\n      counts\n  switch\n      switches\n\n"
                            "program SUBCOMMAND --help lists the flags of one.\n"}));
  EXPECT_EQ(CallSubcommand({"switch", "--help"}),
            (Outcome{.out = "Switches.\n\nusage: program switch\n\n"
                            "  --test_switch  (bool, default false)\n"
                            "      Whether it is on.\n"}));
}

TEST(SubcommandMain, RefusesOtherNamesWithStatus2) {
  const std::string expected = ": expected one of count, switch; --help lists them\n";
  EXPECT_EQ(CallSubcommand({"cuont"}),
            (Outcome{.status = 2, .error = "error: there is no subcommand \"cuont\"" + expected}));
  EXPECT_EQ(CallSubcommand({}),
            (Outcome{.status = 2, .error = "error: no subcommand is given" + expected}));
}

TEST(CommandMain, RelativePathsAreThoseOfTheUserOfBazelRun) {
  const std::filesystem::path before = std::filesystem::current_path();
  const TempDirectory directory;
  const std::string runfiles = directory / "program.runfiles/skiff";
  const std::string user = directory / "user";
  const std::string other = directory / "runfiles";
  for (const std::string& path : {runfiles, user, other}) {
    std::filesystem::create_directories(path);
  }
  const auto expect_run = [](const std::string& from, const std::string& in) {
    std::filesystem::current_path(from);
    const auto run = [&] {
      EXPECT_TRUE(std::filesystem::equivalent(".", in)) << from;
      return 0;
    };
    EXPECT_EQ(Call({}, {.run = run}), Outcome{});
  };
  expect_run(runfiles, runfiles);
  setenv("BUILD_WORKING_DIRECTORY", user.c_str(), 1);
  expect_run(runfiles, user);
  // A shell that `bazel run` has opened goes where it likes.
  expect_run(other, other);
  std::filesystem::current_path(runfiles);
  setenv("BUILD_WORKING_DIRECTORY", (directory / "gone").c_str(), 1);
  const auto run = [] { return 0; };
  EXPECT_EQ(Call({}, {.run = run}),
            (Outcome{.status = 1,
                     .error = "error: enter directory " + directory / "gone" +
                              ": No such file or directory\n"}));
  unsetenv("BUILD_WORKING_DIRECTORY");
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace skiff
